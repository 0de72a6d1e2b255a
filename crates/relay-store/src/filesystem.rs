//! What the disk under the store must be: ours, private, and local.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use rustix::io::Errno;

/// File systems on which SQLite's locks and shared memory cannot be trusted, by their magic number.
const UNSUPPORTED: [(u64, &str); 16] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9p"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x2003_0528, "OrangeFS"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x786f_4256, "VirtualBox shared folder"),
];

/// Makes a folder that only its owner enters, whatever the umask says, or checks the one that is there.
pub fn private_folder(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => check_folder(path, &metadata),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
            refuse_remote(path.ancestors().find(|folder| folder.exists()).unwrap_or(path))?;
            if let Some(parent) = path.parent() {
                make_parents(parent)?;
            }
            DirBuilder::new()
                .mode(0o700)
                .create(path)
                .or_else(already_there)
                .map_err(|fault| io_refusal(path, &fault))?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(|fault| io_refusal(path, &fault))
        }
        Err(fault) => Err(io_refusal(path, &fault)),
    }
}

/// The same for a folder somewhere below relay's home, and for each between the two: a link in the way is not followed either.
pub fn private_folder_below(home: &Path, folder: &Path) -> Result<()> {
    private_folder(home)?;
    let below: Vec<&Path> = folder.ancestors().take_while(|folder| *folder != home).collect();
    below.into_iter().rev().try_for_each(private_folder)
}

fn make_parents(parent: &Path) -> Result<()> {
    if parent.as_os_str().is_empty() || parent.exists() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|fault| io_refusal(parent, &fault))
}

/// Two first commands at once may make the same folder.
fn already_there(fault: io::Error) -> io::Result<()> {
    if fault.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(fault) }
}

fn check_folder(path: &Path, metadata: &fs::Metadata) -> Result<()> {
    if !metadata.is_dir() {
        return Err(displaced(path, metadata));
    }
    check_owner(path, metadata)?;
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(|fault| io_refusal(path, &fault))?;
    }
    Ok(())
}

/// What stands where relay keeps something else. It may be somebody's, so it is neither followed nor replaced.
fn displaced(path: &Path, metadata: &fs::Metadata) -> Refusal {
    let what = if metadata.is_symlink() {
        "is a link, and relay follows none in its store"
    } else if metadata.is_dir() {
        "is a folder, where relay keeps a file"
    } else if metadata.is_file() {
        "is a file, where relay keeps a folder"
    } else {
        "is neither a file nor a folder"
    };
    Code::StoreForeign.refuse(format!("{} {what}", path.display())).with("path", path.to_string_lossy())
}

/// The refusal of what stands in the place of a file, when something does.
pub(crate) fn not_a_file(path: &Path) -> Option<Refusal> {
    let metadata = fs::symlink_metadata(path).ok()?;
    (!metadata.is_file()).then(|| displaced(path, &metadata))
}

pub fn check_owner(path: &Path, metadata: &fs::Metadata) -> Result<()> {
    let me = rustix::process::geteuid().as_raw();
    if metadata.uid() == me {
        return Ok(());
    }
    Err(Code::StoreForeign
        .refuse(format!("{} belongs to user {}, and relay runs as user {me}", path.display(), metadata.uid()))
        .with("path", path.to_string_lossy()))
}

/// Opens or makes a file that only its owner reads, never through a link.
pub fn private_file(path: &Path) -> io::Result<File> {
    open_private(path, true)
}

/// Makes a file that only its owner reads, where there is none.
pub(crate) fn new_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The same for a file that must be there.
pub(crate) fn known_file(path: &Path) -> io::Result<File> {
    open_private(path, false)
}

/// What stands in a file that nobody but us can have written; `None` where that is not so, where it is no file, and where it is
/// longer than this.
pub fn own_text(path: &Path, most: u64) -> Option<String> {
    let file = open_own(path, most).ok()?;
    let is_closed = file.metadata().is_ok_and(|metadata| metadata.mode() & 0o022 == 0);
    if is_closed { text(path, file, most).ok() } else { None }
}

/// What stands in a file of ours, in a folder that only we enter; a refusal that names it where it is a link, no file, somebody
/// else's, or longer than this.
pub fn plain_text(path: &Path, most: u64) -> Result<String> {
    text(path, open_own(path, most)?, most)
}

/// Opened without waiting: a pipe would.
fn open_own(path: &Path, most: u64) -> Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(nofollow() | nonblock()).open(path);
    let file = file.map_err(|fault| io_refusal(path, &fault))?;
    let metadata = file.metadata().map_err(|fault| io_refusal(path, &fault))?;
    if !metadata.is_file() {
        return Err(displaced(path, &metadata));
    }
    check_owner(path, &metadata)?;
    if metadata.len() > most {
        let text = format!("{} has {} bytes, and relay reads at most {most} there", path.display(), metadata.len());
        return Err(Code::StoreForeign.refuse(text).with("path", path.to_string_lossy()));
    }
    Ok(file)
}

fn text(path: &Path, file: File, most: u64) -> Result<String> {
    let mut text = String::new();
    file.take(most).read_to_string(&mut text).map_err(|fault| io_refusal(path, &fault))?;
    Ok(text)
}

/// Writes a small file that only its owner reads, whole or not at all.
pub fn put_private(path: &Path, text: &str) -> io::Result<()> {
    let fresh = with_end(path, &format!(".{}", std::process::id()));
    let written = private_file(&fresh).and_then(|mut file| {
        file.set_len(0)?;
        io::Write::write_all(&mut file, text.as_bytes())
    });
    let put = written.and_then(|()| fs::rename(&fresh, path));
    if put.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    put
}

/// What a file is that must be there and be readable. It is not opened for that: whoever closes a file gives up every lock that
/// its process has on it, also those of the process's other connections to a store.
pub(crate) fn known_metadata(path: &Path) -> io::Result<fs::Metadata> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        return Err(io::Error::from_raw_os_error(rustix::io::Errno::LOOP.raw_os_error()));
    }
    rustix::fs::access(path, rustix::fs::Access::READ_OK)?;
    if metadata.mode() & 0o777 != 0o600 {
        // Best effort, for those who only read.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
    }
    Ok(metadata)
}

fn open_private(path: &Path, create: bool) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(create)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nofollow() | nonblock())
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::from_raw_os_error(rustix::io::Errno::INVAL.raw_os_error()));
    }
    if metadata.mode() & 0o777 != 0o600 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// `<stem>-<number>` in the folder, with the first number for which nothing has that name and one of these ends.
pub(crate) fn free_name(folder: &Path, stem: &str, ends: &[&str]) -> PathBuf {
    let named = |number: u32| folder.join(format!("{stem}-{number}"));
    let is_free = |path: &PathBuf| ends.iter().all(|end| fs::symlink_metadata(with_end(path, end)).is_err());
    (1..).map(named).find(is_free).unwrap_or_else(|| named(0))
}

/// The path with this after its name.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Makes the names in a folder last: a file that is synced may still be without its name after a power cut.
pub fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|fault| io_refusal(folder, &fault))
}

fn nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}

fn nonblock() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}

/// Whether a disk has no room for as much as a few small files.
pub(crate) fn is_full(path: &Path) -> bool {
    const FEW_FILES: u64 = 64 * 1024;
    let disk = path.ancestors().find_map(|path| rustix::fs::statvfs(path).ok());
    disk.is_some_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < FEW_FILES)
}

/// Refuses a file system that another machine serves. Asked once per store and device: the answer cannot change.
pub fn must_be_local(folder: &Path) -> Result<()> {
    let device = fs::metadata(folder).map_err(|fault| io_refusal(folder, &fault))?.dev().to_string();
    let marker = folder.join("device");
    if fs::read_to_string(&marker).is_ok_and(|known| known == device) {
        return Ok(());
    }
    refuse_remote(folder)?;
    let written = private_file(&marker).and_then(|mut file| {
        file.set_len(0)?;
        io::Write::write_all(&mut file, device.as_bytes())
    });
    match written {
        // Whoever only reads asks again each time.
        Err(fault) if fault.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(()),
        written => written.map_err(|fault| io_refusal(&marker, &fault)),
    }
}

fn refuse_remote(folder: &Path) -> Result<()> {
    let info = rustix::fs::statfs(folder).map_err(|fault| io_refusal(folder, &fault.into()))?;
    #[allow(clippy::unnecessary_cast, reason = "the width of f_type differs between platforms")]
    let magic = (info.f_type as u64) & 0xffff_ffff;
    match unsupported(magic) {
        None => Ok(()),
        Some(name) => Err(Code::StoreUnsupported
            .refuse(format!("{} lies on {name}, where locks between processes are not reliable", folder.display()))
            .with("path", folder.to_string_lossy())
            .with("filesystem", name)),
    }
}

fn unsupported(magic: u64) -> Option<&'static str> {
    UNSUPPORTED.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

/// An operating-system error as a class, with the path that it concerns.
pub fn io_refusal(path: &Path, fault: &io::Error) -> Refusal {
    let code = match fault.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => Code::StoreFull,
        Some(Errno::ACCESS | Errno::PERM) => {
            if let Err(foreign) = foreign(path) {
                return foreign;
            }
            Code::StoreReadonly
        }
        Some(Errno::ROFS) => Code::StoreReadonly,
        Some(Errno::LOOP | Errno::NOTDIR | Errno::ISDIR) => {
            if let Ok(metadata) = fs::symlink_metadata(path) {
                return displaced(path, &metadata);
            }
            Code::StoreForeign
        }
        _ => Code::StoreIo,
    };
    code.refuse(format!("{}: {fault}", path.display())).with("path", path.to_string_lossy())
}

/// Whether the way to a path is barred because somebody else owns it, or the folder that hides it.
fn foreign(path: &Path) -> Result<()> {
    for part in path.ancestors() {
        match fs::symlink_metadata(part) {
            Ok(metadata) => return check_owner(part, &metadata),
            Err(fault) if fault.kind() == io::ErrorKind::PermissionDenied => {}
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"))
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).map_or(0, |metadata| metadata.mode() & 0o777)
    }

    #[track_caller]
    fn well<T>(result: std::result::Result<T, impl std::fmt::Display>) -> T {
        result.unwrap_or_else(|fault| panic!("{fault}"))
    }

    #[test]
    fn local_file_systems_are_taken() {
        let (ext4, xfs, btrfs, zfs, f2fs) = (0xef53, 0x5846_5342, 0x9123_683e, 0x2fc1_2fc1, 0xf2f5_2010);
        let (tmpfs, overlay, bcachefs, apfs) = (0x0102_1994, 0x794c_7630, 0xca45_1a4e, 0x1a);
        for magic in [ext4, xfs, btrfs, zfs, f2fs, tmpfs, overlay, bcachefs, apfs] {
            assert_eq!(unsupported(magic), None, "{magic:#x}");
        }
    }

    #[test]
    fn an_error_of_the_system_is_a_class_that_names_the_path() {
        let folder = folder();
        for (errno, code) in [
            (Errno::NOSPC, Code::StoreFull),
            (Errno::DQUOT, Code::StoreFull),
            (Errno::ROFS, Code::StoreReadonly),
            (Errno::ACCESS, Code::StoreReadonly),
            (Errno::PERM, Code::StoreReadonly),
            (Errno::LOOP, Code::StoreForeign),
            (Errno::NOTDIR, Code::StoreForeign),
            (Errno::ISDIR, Code::StoreForeign),
            (Errno::IO, Code::StoreIo),
        ] {
            let refusal = io_refusal(folder.path(), &errno.into());
            assert_eq!(refusal.code, code, "{errno}");
            assert!(refusal.message.contains(&*folder.path().to_string_lossy()), "{refusal}");
            assert_eq!(refusal.details["path"], *folder.path().to_string_lossy(), "{errno}");
        }
    }

    #[test]
    fn a_folder_is_made_private_with_all_its_parents() {
        let folder = folder();
        let path = folder.path().join("a/b/c");
        well(private_folder(&path));
        for made in [path.as_path(), &folder.path().join("a/b"), &folder.path().join("a")] {
            assert_eq!(mode(made), 0o700, "{}", made.display());
        }
        well(fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
        well(private_folder(&path));
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_file_is_made_private_and_keeps_what_is_in_it() {
        let folder = folder();
        let path = folder.path().join("file");
        drop(well(private_file(&path)));
        assert_eq!(mode(&path), 0o600);
        well(fs::write(&path, "text"));
        for loose in [0o666, 0o640, 0o700] {
            well(fs::set_permissions(&path, fs::Permissions::from_mode(loose)));
            drop(well(private_file(&path)));
            assert_eq!(mode(&path), 0o600, "{loose:o}");
        }
        assert_eq!(well(fs::read_to_string(&path)), "text");
    }

    #[test]
    fn nothing_is_opened_through_a_link() {
        let folder = folder();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        well(fs::write(&file, "text"));
        well(std::os::unix::fs::symlink(&file, &link));
        let fault = private_file(&link).err().unwrap_or_else(|| panic!("the link was followed"));
        let refusal = io_refusal(&link, &fault);
        assert_eq!(refusal.code, Code::StoreForeign);
        assert!(refusal.message.contains("is a link"), "{refusal}");
        assert_eq!(private_folder(&link).map_err(|refusal| refusal.code), Err(Code::StoreForeign));
        assert_eq!(private_folder(&file).map_err(|refusal| refusal.code), Err(Code::StoreForeign));
    }

    #[test]
    fn no_link_on_the_way_to_a_folder_is_followed() {
        let folder = folder();
        let (home, victim) = (folder.path().join("home"), folder.path().join("victim"));
        well(private_folder_below(&home, &home.join("hooks/calls/one")));
        assert_eq!((mode(&home.join("hooks")), mode(&home.join("hooks/calls/one"))), (0o700, 0o700));
        well(fs::remove_dir_all(home.join("hooks/calls")));
        well(fs::create_dir(&victim));
        well(std::os::unix::fs::symlink(&victim, home.join("hooks/calls")));
        let refused = private_folder_below(&home, &home.join("hooks/calls/one"));
        assert_eq!(refused.map_err(|refusal| refusal.code), Err(Code::StoreForeign));
        assert!(fs::read_dir(&victim).is_ok_and(|mut entries| entries.next().is_none()));
    }

    #[test]
    fn a_text_is_read_from_a_file_of_ours_without_waiting_and_from_nothing_else() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        well(fs::write(path("file"), "text"));
        well(std::os::unix::fs::symlink(path("file"), path("link")));
        well(fs::create_dir(path("folder")));
        well(rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0));
        assert_eq!(plain_text(&path("file"), 4).as_deref(), Ok("text"));
        for (name, why) in
            [("link", "is a link"), ("folder", "is a folder"), ("pipe", "is neither"), ("file", "4 bytes")]
        {
            let refusal = plain_text(&path(name), 3).err().unwrap_or_else(|| panic!("{name} was read"));
            assert!(refusal.message.contains(why), "{refusal}");
            assert_eq!(own_text(&path(name), 3), None, "{name}");
        }
        well(fs::set_permissions(path("file"), fs::Permissions::from_mode(0o620)));
        assert_eq!((own_text(&path("file"), 4), plain_text(&path("file"), 4).is_ok()), (None, true));
    }

    #[test]
    fn the_device_is_asked_once_and_again_after_a_move() {
        let folder = folder();
        let marker = folder.path().join("device");
        let device = well(fs::metadata(folder.path())).dev().to_string();
        well(must_be_local(folder.path()));
        assert_eq!(well(fs::read_to_string(&marker)), device);
        // As it looks after a move from a disk with a longer number.
        well(fs::write(&marker, format!("{device}99")));
        well(must_be_local(folder.path()));
        assert_eq!(well(fs::read_to_string(&marker)), device);
    }
}
