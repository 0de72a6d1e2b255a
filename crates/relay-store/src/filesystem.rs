//! What the disk under the store must be: ours, private, and local.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use relay_core::error::{Code, Refusal};
use relay_core::store::Result;

/// File systems on which SQLite's locks and shared memory cannot be trusted, by their magic number.
const UNSUPPORTED: [(u64, &str); 13] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9p"),
    (0x5346_414f, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x786f_4256, "VirtualBox shared folder"),
];

/// Makes a folder that only its owner enters, whatever the umask says, or checks the one that is there.
pub fn private_folder(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => check_folder(path, &metadata),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
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
        return Err(Code::StoreForeign
            .refuse(format!("{} is not a folder of relay's", path.display()))
            .with("path", path.to_string_lossy()));
    }
    check_owner(path, metadata)?;
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(|fault| io_refusal(path, &fault))?;
    }
    Ok(())
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
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nofollow())
        .open(path)?;
    let metadata = file.metadata()?;
    if metadata.mode() & 0o777 != 0o600 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

fn nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}

/// Refuses a file system that another machine serves. Asked once per store and device: the answer cannot change.
pub fn must_be_local(folder: &Path) -> Result<()> {
    let device = fs::metadata(folder).map_err(|fault| io_refusal(folder, &fault))?.dev().to_string();
    let marker = folder.join("device");
    if fs::read_to_string(&marker).is_ok_and(|known| known == device) {
        return Ok(());
    }
    let info = rustix::fs::statfs(folder).map_err(|fault| io_refusal(folder, &fault.into()))?;
    #[allow(clippy::unnecessary_cast, reason = "the width of f_type differs between platforms")]
    let magic = (info.f_type as u64) & 0xffff_ffff;
    if let Some((_, name)) = UNSUPPORTED.iter().find(|(known, _)| *known == magic) {
        return Err(Code::StoreUnsupported
            .refuse(format!("{} lies on {name}, where locks between processes are not reliable", folder.display()))
            .with("path", folder.to_string_lossy())
            .with("filesystem", *name));
    }
    let mut file = private_file(&marker).map_err(|fault| io_refusal(&marker, &fault))?;
    io::Write::write_all(&mut file, device.as_bytes()).map_err(|fault| io_refusal(&marker, &fault))
}

/// An operating-system error as a class, with the path that it concerns.
pub fn io_refusal(path: &Path, fault: &io::Error) -> Refusal {
    let code = match fault.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT) => Code::StoreFull,
        Some(rustix::io::Errno::ROFS | rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => Code::StoreReadonly,
        Some(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => Code::StoreForeign,
        _ => Code::StoreIo,
    };
    code.refuse(format!("{}: {fault}", path.display())).with("path", path.to_string_lossy())
}
