//! Privileges that a test needs or must not have: mounts in a namespace of its own, another uid, another owner.
//!
//! Everything works for root, and all but the power cuts for an ordinary user where the system allows user namespaces. Where
//! it does not, the test fails and says which line to run: a test that skips itself proves nothing.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::bus::RELAY;

/// The line that has all the privileges.
pub const AS_ROOT: &str = "sudo -E env PATH=\"$PATH\" scripts/test";

/// Two users who own nothing that relay runs on.
const NOBODY: u32 = 65534;
pub const STRANGER: u32 = 65533;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A mount namespace that lives as long as this value: what is mounted in it is seen from nowhere else, and is gone with
/// its last process however the test ends.
pub struct Stage {
    holder: Child,
}

impl Stage {
    pub fn new() -> Self {
        let mut command = Command::new("unshare");
        command.args(if is_root() { ["--mount"].as_slice() } else { &["--user", "--map-root-user", "--mount"] });
        command.args(["--", "sh", "-c", "echo ready && exec cat"]);
        let mut holder = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|fault| panic!("unshare (of util-linux) cannot be run: {fault}"));
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "no namespace to mount in ({command:?}); run `{AS_ROOT}`");
        Stage { holder }
    }

    /// The same command inside the namespace.
    pub fn enter(&self, command: &Command) -> Command {
        let target = self.holder.id().to_string();
        let mut prefix = vec!["nsenter", "--target", &target, "--mount"];
        if !is_root() {
            prefix.extend(["--user", "--preserve-credentials"]);
        }
        prefix.push("--");
        behind(&prefix, command)
    }

    pub fn mount(&self, args: &[&str], at: &Path) {
        let output = self.enter(Command::new("mount").args(args).arg(at)).output().unwrap();
        let fault = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "mount {args:?}: {fault}\nrun `{AS_ROOT}`");
    }

    /// Where a path inside the namespace can be reached from outside.
    pub fn look(&self, path: &Path) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}", self.holder.id(), path.display()))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The same command without the privileges of root, which writes into read-only folders: as another user, or as it is
/// when the test has none. Its files must be that user's: see [`hand_over`].
pub fn unprivileged(command: &Command) -> Command {
    if is_root() { as_user(NOBODY, command) } else { behind(&[], command) }
}

/// The same command as another user; only root can do that.
pub fn as_user(uid: u32, command: &Command) -> Command {
    let uid = uid.to_string();
    behind(&["setpriv", "--reuid", &uid, "--regid", &uid, "--clear-groups", "--"], command)
}

/// The same command as somebody else: root can be anybody, and whoever has subordinate ids can be one of those.
pub fn as_somebody_else(command: &Command) -> Command {
    if is_root() {
        return as_user(STRANGER, command);
    }
    behind(&["unshare", "--user", "--map-root-user", "--map-auto", "--"], &as_user(1, command))
}

/// A copy of the binary that other users can reach too, wherever the build lies.
pub fn binary_for_all(folder: &Path) -> PathBuf {
    let path = folder.join("relay");
    open_to_all(folder);
    // Copied by another process: a descriptor open for writing that leaks into a child would make the copy "busy".
    let copied = Command::new("cp").arg(RELAY).arg(&path).status().unwrap();
    assert!(copied.success(), "{RELAY} cannot be copied to {}", path.display());
    path
}

pub fn open_to_all(folder: &Path) {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Gives a folder to the user that [`unprivileged`] commands run as.
pub fn hand_over(folder: &Path) {
    if is_root() {
        chown(NOBODY, folder);
    }
}

/// A folder with all that is in it, in the hands of somebody else until this value is gone.
pub struct Foreign {
    folder: PathBuf,
}

impl Foreign {
    pub fn new(folder: &Path) -> Self {
        chown(if is_root() { NOBODY } else { 1 }, folder);
        Foreign { folder: folder.to_owned() }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // Otherwise nobody but root could remove the test's folder.
        chown(0, &self.folder);
    }
}

/// Root simply does it. Anybody else is root over their subordinate ids: 0 is then the user, 1 the first of those.
fn chown(uid: u32, folder: &Path) {
    let mut command = Command::new("chown");
    command.args(["-R", &format!("{uid}:{uid}")]).arg(folder);
    if !is_root() {
        command = behind(&["unshare", "--user", "--map-root-user", "--map-auto", "--"], &command);
    }
    let output = command.output().unwrap();
    let fault = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {fault}\nthis needs root or subordinate ids; run `{AS_ROOT}`");
}

/// The same command, environment and folder included, run by another one.
fn behind(prefix: &[&str], command: &Command) -> Command {
    let mut line: Vec<std::ffi::OsString> = prefix.iter().map(Into::into).collect();
    // Entering a namespace forgets the working directory.
    if let Some(folder) = command.get_current_dir() {
        line.extend(["env".into(), "-C".into(), folder.into()]);
    }
    line.push(command.get_program().to_owned());
    let mut wrapped = Command::new(&line[0]);
    wrapped.args(&line[1..]).args(command.get_args()).stdin(Stdio::null());
    if command.get_envs().next().is_some() {
        wrapped.env_clear();
    }
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    wrapped
}
