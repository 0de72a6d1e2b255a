//! Other programs: the one door. Never a shell, but where a coding agent would run one; what runs is an argument vector.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use relay_core::error::Code;
use relay_core::store::Result;

/// A command of the caller's, in the caller's environment.
pub fn spawn(argv: &[String], stdout_to_stderr: bool) -> Result<Child> {
    let (program, arguments) =
        argv.split_first().ok_or_else(|| Code::InputInvalid.refuse("name a command after `--`"))?;
    let mut command = new(program);
    command.args(arguments);
    if stdout_to_stderr {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    command.spawn().map_err(|fault| Code::InputInvalid.refuse(format!("{program:?} cannot be run: {fault}")))
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn new(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// Waits for the command to end and runs `meanwhile` at every look at it, many times a second. An interrupt of the
/// terminal reaches the command itself; a request to terminate is passed on to it, so that relay can still give back
/// what it holds.
pub fn wait(child: &mut Child, mut meanwhile: impl FnMut()) -> Result<ExitStatus> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let terminated = Arc::new(AtomicBool::new(false));
    let watch = |signal, flag: &Arc<AtomicBool>| signal_hook::flag::register(signal, Arc::clone(flag));
    let registered = [
        watch(signal_hook::consts::SIGINT, &interrupted),
        watch(signal_hook::consts::SIGTERM, &terminated),
        watch(signal_hook::consts::SIGHUP, &terminated),
    ];
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) => {}
            Err(fault) => break Err(Code::Internal.refuse(format!("the command cannot be waited for: {fault}"))),
        }
        if terminated.swap(false, Ordering::Relaxed) {
            terminate(child);
        }
        #[expect(clippy::disallowed_methods, reason = "waiting for a process that is not ours to watch")]
        std::thread::sleep(Duration::from_millis(50));
        meanwhile();
    };
    for id in registered.into_iter().flatten() {
        signal_hook::low_level::unregister(id);
    }
    ended
}

/// Looks until `ready`, or until the process has ended by itself.
pub fn until(child: &mut Child, mut ready: impl FnMut() -> bool) -> Result<()> {
    loop {
        let ended = child.try_wait().map_err(|fault| Code::Internal.refuse(format!("a process is lost: {fault}")))?;
        if ended.is_some() || ready() {
            return Ok(());
        }
        #[expect(clippy::disallowed_methods, reason = "what another process announces wakes nobody")]
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What this process and git make from here on is for its owner alone, whatever the caller's mask.
pub fn keep_private() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Leaves the terminal and the group of the process that started us.
pub fn detach() {
    let _ = rustix::process::setsid();
}

/// Starts this same program to go on by itself: nothing of ours stays open in it, and nobody has to wait for it. Where a
/// sandbox allows no process, there is none.
pub fn leave_behind(program: &Path, arguments: &[&str]) -> Option<Child> {
    close_fds::set_fds_cloexec(3, &[]);
    let mut command = new(program);
    command.args(arguments).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok()
}

/// Starts somebody else's program to go on by itself, in a session of its own: what ends us does not end it. Whether there is one.
pub fn set_going(argv: &[String]) -> bool {
    let Some((program, arguments)) = argv.split_first() else { return false };
    close_fds::set_fds_cloexec(3, &[]);
    let mut command = new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().map(reap).is_ok()
}

/// The same for what should be done by now: it is waited for, but no longer than this, and then goes on by itself.
pub fn run_for_a_while(program: &Path, arguments: &[Vec<&str>], time: Duration) {
    let mut left: Vec<Child> = arguments.iter().filter_map(|arguments| leave_behind(program, arguments)).collect();
    let (look, mut looks) = (Duration::from_millis(10), time.as_millis() / 10);
    while !left.is_empty() && looks > 0 {
        left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        #[expect(clippy::disallowed_methods, reason = "nothing else is left to do")]
        std::thread::sleep(look);
        looks -= 1;
    }
}

/// A command that somebody else configured, in a group of its own, so that all of it can be ended.
pub struct Tried {
    child: Child,
    out: File,
    errors: File,
}

/// Starts it with this on its standard input.
pub fn try_out(command: &mut Command, input: &str) -> std::io::Result<Tried> {
    let mut stdin = tempfile::tempfile()?;
    stdin.write_all(input.as_bytes())?;
    stdin.rewind()?;
    let (out, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(stdin).stdout(out.try_clone()?).stderr(errors.try_clone()?).process_group(0);
    Ok(Tried { child: command.spawn()?, out, errors })
}

impl Tried {
    /// What it came to; nothing where it was ended because its time was over.
    pub fn result(mut self, is_over: impl Fn() -> bool) -> Option<Output> {
        let mut over = false;
        until(&mut self.child, || {
            over = is_over();
            over
        })
        .ok()?;
        let status = self.child.try_wait().ok()?.filter(|_| !over)?;
        let read = |mut file: &File| {
            let mut bytes = Vec::new();
            file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map(|_| bytes).unwrap_or_default()
        };
        Some(Output { status, stdout: read(&self.out), stderr: read(&self.errors) })
    }
}

impl Drop for Tried {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
            && matches!(self.child.try_wait(), Ok(None))
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Takes note of its end, for a process that goes on itself: otherwise what ended stays in the table of processes as long.
pub fn reap(mut child: Child) {
    #[expect(clippy::disallowed_methods, reason = "it does nothing but wait, and ends with what it waits for")]
    std::thread::spawn(move || child.wait());
}

fn terminate(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// The status to pass on: the command's own, or 128 and the signal, as shells do.
pub fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code & 0xff).unwrap_or(1)
}
