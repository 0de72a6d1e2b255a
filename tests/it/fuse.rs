//! A file system in user space, as small as it gets: it has folders and nothing else. A store on it must be refused
//! before anything is written, so it need not be able to do more.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use crate::privilege::{AS_ROOT, Stage};

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const MKDIR: u32 = 9;
const STATFS: u32 = 17;
const INIT: u32 = 26;
const BATCH_FORGET: u32 = 42;

const ENOENT: i32 = 2;
const ENOSYS: i32 = 38;
/// The operation's header, before what is particular to it.
const HEADER: usize = 40;
const ROOT: u64 = 1;

/// What the file system was asked to make.
#[derive(Clone, Default)]
pub struct Made(Arc<Mutex<Vec<String>>>);

impl Made {
    pub fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Mounts it inside the namespace. It serves until the namespace is gone.
pub fn mount(stage: &Stage, at: &Path) -> Made {
    let script = r#"exec 3<>/dev/fuse && mount -i -t fuse -o "fd=3,rootmode=40000,user_id=0,group_id=0" relay-test "$0" &&
        echo mounted && exec cat"#;
    let mut child = stage
        .enter(Command::new("sh").args(["-c", script]).arg(at))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "mounted\n", "FUSE cannot be mounted: it needs /dev/fuse; run `{AS_ROOT}`");
    // The device must be opened by a process of the namespace, and is served from here.
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let process = rustix::process::pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let device = File::from(rustix::process::pidfd_getfd(process, 3, PidfdGetfdFlags::empty()).unwrap());
    drop(child.stdin.take());
    child.wait().unwrap();
    let made = Made::default();
    let server = Server { device, folders: HashMap::new(), made: made.clone() };
    std::thread::spawn(move || server.serve());
    made
}

struct Server {
    device: File,
    /// The number of each folder, by its parent's number and its name.
    folders: HashMap<(u64, String), u64>,
    made: Made,
}

impl Server {
    /// Ends when the mount is gone: reading then fails.
    fn serve(mut self) {
        let mut buffer = vec![0; 1 << 17];
        while let Ok(length) = self.device.read(&mut buffer) {
            let request = buffer[..length].to_vec();
            let (operation, unique) = (u32_at(&request, 4), &request[8..16]);
            if operation == FORGET || operation == BATCH_FORGET {
                continue;
            }
            let (error, body) = match self.answer(operation, u64_at(&request, 16), &request[HEADER..]) {
                Ok(body) => (0, body),
                Err(errno) => (-errno, Vec::new()),
            };
            let mut reply = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
            reply.extend(error.to_ne_bytes());
            reply.extend(unique);
            reply.extend(body);
            let _ = self.device.write(&reply);
        }
    }

    fn answer(&mut self, operation: u32, node: u64, body: &[u8]) -> Result<Vec<u8>, i32> {
        match operation {
            // Version 7.31, no features, writes of at most 4096 bytes.
            INIT => Ok(words(&[7, 31, 0, 0, 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
            GETATTR | SETATTR => Ok([vec![0; 16], attributes(node)].concat()),
            LOOKUP => self.folders.get(&(node, name(body))).map(|found| entry(*found)).ok_or(ENOENT),
            MKDIR => {
                let (number, name) = (ROOT + 1 + self.folders.len() as u64, name(&body[8..]));
                self.made.0.lock().unwrap().push(name.clone());
                self.folders.insert((node, name), number);
                Ok(entry(number))
            }
            // Room enough: this is not the test of a full disk.
            STATFS => Ok([1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20]
                .iter()
                .flat_map(|count: &u64| count.to_ne_bytes())
                .chain(words(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0]))
                .collect()),
            _ => Err(ENOSYS),
        }
    }
}

fn entry(node: u64) -> Vec<u8> {
    [node.to_ne_bytes().to_vec(), vec![0; 32], attributes(node)].concat()
}

/// A folder of root's that only root enters.
fn attributes(node: u64) -> Vec<u8> {
    let mut bytes = node.to_ne_bytes().to_vec();
    bytes.extend([0; 40]);
    bytes.extend(words(&[0, 0, 0, 0o040_700, 2, 0, 0, 0, 4096, 0]));
    bytes
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn name(bytes: &[u8]) -> String {
    use std::os::unix::ffi::OsStrExt;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    OsStr::from_bytes(&bytes[..end]).to_string_lossy().into_owned()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}
