//! The human's credential: a file of mode 0600. Hooks and tools never read it; only a call that says `--agent human` does.

use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use relay_core::error::{Code, Refusal};
use relay_core::store::{Random, Result};
use relay_store::filesystem::{io_refusal, private_file, private_folder};
use subtle::ConstantTimeEq;

fn path(home: &Path) -> PathBuf {
    home.join("human")
}

/// Makes the credential, once. Returns where it lies and whether it is new.
pub fn create(home: &Path, random: &dyn Random) -> Result<(PathBuf, bool)> {
    let path = path(home);
    if verify(home).is_ok() {
        return Ok((path, false));
    }
    private_folder(home)?;
    let secret = relay_core::domain::event::hex(&random.bytes());
    let written = private_file(&path).and_then(|mut file| file.set_len(0).and_then(|()| writeln!(file, "{secret}")));
    written.map_err(|fault| io_refusal(&path, &fault))?;
    Ok((path, true))
}

/// Whether the caller holds the human's credential.
pub fn verify(home: &Path) -> Result<()> {
    secret(home).map(drop)
}

/// What the credential says, to be shown to a server and to nobody else.
pub fn secret(home: &Path) -> Result<String> {
    let path = path(home);
    let mut file = std::fs::File::open(&path).map_err(|_| refusal("the human's credential is not on this machine"))?;
    let metadata = file.metadata().map_err(|fault| io_refusal(&path, &fault))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        return Err(refusal(&format!("{} can be read by others, so it proves nothing", path.display())));
    }
    let mut secret = String::new();
    file.read_to_string(&mut secret).map_err(|fault| io_refusal(&path, &fault))?;
    if secret.trim().len() < 32 {
        return Err(refusal(&format!("{} holds no credential", path.display())));
    }
    Ok(secret.trim().to_owned())
}

/// Whether somebody elsewhere holds the credential of this machine.
pub fn is_shown(home: &Path, shown: &str) -> Result<()> {
    let own = secret(home)?;
    if bool::from(own.as_bytes().ct_eq(shown.as_bytes())) {
        return Ok(());
    }
    Err(refusal("this is not the credential of the human where the stores are"))
}

fn refusal(why: &str) -> Refusal {
    Code::Unauthorized.refuse(why)
}
