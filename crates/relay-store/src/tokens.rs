//! The bearer tokens of a machine: a private file each, which holds the hash of a token and never the token.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use relay_core::domain::event::hex;
use relay_core::domain::time::Timestamp;
use relay_core::error::Code;
use relay_core::store::{Random, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::filesystem::{io_refusal, own_text, private_folder, sync_folder};

/// What tells a token of relay's from other secrets.
const PREFIX: &str = "relay_";
/// No file of a token is longer.
const MOST_BYTES: u64 = 4 * 1024;

/// One credential that somebody may bring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    #[serde(skip)]
    pub name: String,
    hash: String,
    /// It stands for itself, and not for the owner of the stores.
    pub separate: bool,
    pub added_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct Tokens {
    folder: PathBuf,
}

/// The tokens for one who asks with every request: they are read again when their folder has changed.
#[derive(Debug)]
pub struct Keyring {
    tokens: Tokens,
    read: Mutex<Option<(SystemTime, Vec<Token>)>>,
}

/// Two changes within this time may leave a folder with the same time on it: what changed so lately is read every time.
const RACY: Duration = Duration::from_secs(2);

impl Keyring {
    pub fn new(tokens: Tokens) -> Self {
        Keyring { tokens, read: Mutex::new(None) }
    }

    /// What is there at this moment.
    #[expect(clippy::disallowed_methods, reason = "it is compared with what the clock of the files says")]
    pub fn list(&self) -> Result<Vec<Token>> {
        let now = SystemTime::now();
        let changed = fs::metadata(&self.tokens.folder).and_then(|folder| folder.modified());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*read, &changed) {
            (Some((at, tokens)), Ok(changed)) if at == changed => return Ok(tokens.clone()),
            _ => {}
        }
        let tokens = self.tokens.list()?;
        let is_settled = |changed: &SystemTime| *changed + RACY < now;
        *read = changed.ok().filter(is_settled).map(|changed| (changed, tokens.clone()));
        Ok(tokens)
    }

    /// The token that this secret is.
    pub fn find(&self, secret: &str) -> Result<Option<Token>> {
        Ok(among(self.list()?, secret))
    }
}

impl Tokens {
    pub fn of(home: &Path) -> Self {
        Tokens { folder: home.join("tokens") }
    }

    /// Makes one and says it, for the only time.
    pub fn add(&self, name: &str, separate: bool, now: Timestamp, random: &dyn Random) -> Result<String> {
        check(name)?;
        let secret = format!("{PREFIX}{}{}", hex(&random.bytes()), hex(&random.bytes()));
        let token = Token { name: name.to_owned(), hash: hash(&secret), separate, added_at: now };
        if let Some(home) = self.folder.parent() {
            private_folder(home)?;
        }
        private_folder(&self.folder)?;
        let path = self.folder.join(name);
        let text = serde_json::to_string(&token).map_err(|fault| Code::Internal.refuse(fault.to_string()))?;
        // A name is taken by whoever makes its file.
        let written = crate::filesystem::new_private_file(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        match written {
            Ok(()) => sync_folder(&self.folder)?,
            Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => {
                let text = format!("there is a token {name} already; revoke it first, or take another name");
                return Err(Code::InputInvalid.refuse(text).with("name", name));
            }
            Err(fault) => return Err(io_refusal(&path, &fault)),
        }
        Ok(secret)
    }

    /// By name. What somebody else may have put there, or could write to, lets nobody in.
    pub fn list(&self) -> Result<Vec<Token>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(fault) => return Err(io_refusal(&self.folder, &fault)),
        };
        let read = |path: PathBuf| {
            let token: Token = serde_json::from_str(&own_text(&path, MOST_BYTES)?).ok()?;
            Some(Token { name: path.file_name()?.to_str()?.to_owned(), ..token })
        };
        let mut tokens: Vec<Token> = entries.flatten().filter_map(|entry| read(entry.path())).collect();
        tokens.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tokens)
    }

    /// From now on nobody is let in with it.
    pub fn revoke(&self, name: &str) -> Result<()> {
        check(name)?;
        let path = self.folder.join(name);
        match fs::remove_file(&path) {
            Ok(()) => sync_folder(&self.folder),
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => {
                let text = format!("there is no token {name}; `relay token list` shows those that there are");
                Err(Code::InputInvalid.refuse(text).with("name", name))
            }
            Err(fault) => Err(io_refusal(&path, &fault)),
        }
    }
}

/// Every one is compared, in a time that says nothing about how alike they are.
fn among(tokens: Vec<Token>, secret: &str) -> Option<Token> {
    let wanted = hash(secret);
    let is_it = |token: &Token| bool::from(token.hash.as_bytes().ct_eq(wanted.as_bytes()));
    tokens.into_iter().fold(None, |found, token| if is_it(&token) { Some(token) } else { found })
}

/// A name is also the name of a file.
fn check(name: &str) -> Result<()> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=64).contains(&name.len()) && name.chars().all(is_letter) {
        return Ok(());
    }
    Err(Code::InputInvalid.refuse(format!("{name:?} is no name for a token: 1 to 64 letters, digits, `_` and `-`")))
}

fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::SystemRandom;

    /// A folder that has not changed for a while is not read again, and one that has is, at once.
    #[test]
    fn what_was_read_is_believed_until_the_folder_changes() -> Result<()> {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let tokens = Tokens::of(home.path());
        let secret = tokens.add("laptop", false, Timestamp::from_millis(0), &SystemRandom)?;
        let (keyring, folder) = (Keyring::new(tokens.clone()), home.path().join("tokens"));
        let aged = |seconds: u64| {
            let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            fs::File::open(&folder)
                .and_then(|file| file.set_modified(long_ago))
                .unwrap_or_else(|fault| panic!("{fault}"));
        };
        assert!(keyring.find(&secret)?.is_some());
        let text = fs::read_to_string(folder.join("laptop")).unwrap_or_default();
        tokens.revoke("laptop")?;
        assert_eq!(keyring.find(&secret)?, None, "it changed just now, and is read every time");
        fs::write(folder.join("laptop"), text).unwrap_or_else(|fault| panic!("{fault}"));
        aged(1_000);
        assert!(keyring.find(&secret)?.is_some());
        tokens.revoke("laptop")?;
        assert_eq!(keyring.find(&secret)?, None, "it has changed");
        Ok(())
    }

    #[test]
    fn a_token_is_found_by_its_secret_until_it_is_revoked() -> Result<()> {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let tokens = Tokens::of(&home.path().join("home"));
        assert_eq!(tokens.list()?, []);
        let now = Timestamp::from_millis(0);
        let laptop = tokens.add("laptop", false, now, &SystemRandom)?;
        let robot = tokens.add("robot", true, now, &SystemRandom)?;
        let keyring = Keyring::new(tokens.clone());
        let found = |secret: &str| keyring.find(secret).map(|token| token.map(|token| (token.name, token.separate)));
        assert_eq!(found(&laptop)?, Some(("laptop".to_owned(), false)));
        assert_eq!(found(&robot)?, Some(("robot".to_owned(), true)));
        for wrong in ["", "relay_", &laptop[1..], &laptop[..laptop.len() - 1], &format!("{laptop}0")] {
            assert_eq!(found(wrong)?, None, "{wrong}");
        }
        assert!(tokens.add("robot", true, now, &SystemRandom).is_err(), "a name is taken once");
        tokens.revoke("robot")?;
        assert_eq!(found(&robot)?, None);
        assert!(tokens.revoke("robot").is_err());
        for name in ["", "../human", "a b", ".", &"x".repeat(65)] {
            assert!(tokens.add(name, true, now, &SystemRandom).is_err(), "{name}");
            assert!(tokens.revoke(name).is_err(), "{name}");
        }
        let files: Vec<String> = tokens.list()?.into_iter().map(|token| token.name).collect();
        assert_eq!(files, ["laptop"]);
        let kept = fs::read_to_string(home.path().join("home/tokens/laptop")).unwrap_or_default();
        assert!(!kept.contains(&laptop) && !kept.contains(&laptop[PREFIX.len()..]), "only the hash is kept");
        Ok(())
    }

    #[test]
    fn what_somebody_else_could_have_written_lets_nobody_in() -> Result<()> {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let tokens = Tokens::of(home.path());
        let secret = tokens.add("laptop", false, Timestamp::from_millis(0), &SystemRandom)?;
        let folder = home.path().join("tokens");
        let (own, outside) = (folder.join("laptop"), home.path().join("outside"));
        let well = |done: std::io::Result<()>| done.unwrap_or_else(|fault| panic!("{fault}"));
        let mode = |mode| well(fs::set_permissions(&own, fs::Permissions::from_mode(mode)));
        let is_let_in = || tokens.list().is_ok_and(|tokens| among(tokens, &secret).is_some());
        for (bits, expected) in [(0o600, true), (0o644, true), (0o620, false), (0o602, false), (0o600, true)] {
            mode(bits);
            assert_eq!(is_let_in(), expected, "{bits:o}");
        }
        let text = fs::read_to_string(&own).unwrap_or_else(|fault| panic!("{fault}"));
        well(fs::write(&own, format!("{text}{}", " ".repeat(8 * 1024))));
        assert!(!is_let_in(), "it is too long");
        well(fs::write(&own, &text));
        well(fs::rename(&own, &outside));
        well(std::os::unix::fs::symlink(&outside, &own));
        assert!(!is_let_in(), "it is a link");
        well(fs::remove_file(&own));
        // Nobody writes to it, and nobody waits for that.
        well(rustix::fs::mkfifoat(rustix::fs::CWD, &own, rustix::fs::Mode::RUSR).map_err(Into::into));
        assert!(!is_let_in() && tokens.list()?.is_empty(), "it is a pipe");
        well(fs::remove_file(&own));
        well(fs::rename(&outside, &own));
        assert!(is_let_in());
        Ok(())
    }
}
