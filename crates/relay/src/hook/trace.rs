//! What went wrong in a hook, which lets everything go on and says little: kept for whoever looks with `relay doctor`.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use relay_core::domain::time::Timestamp;
use relay_store::filesystem::private_file;
use serde_json::json;

/// Then it is begun anew: what matters is what happens now.
const MOST: u64 = 64 * 1024;

/// Best effort: where even this cannot be written, there is nobody to tell.
pub fn note(home: &Path, what: &str, why: &str, at: Timestamp) {
    let Ok(mut file) = private_file(&home.join("hook.log")) else { return };
    if file.metadata().is_ok_and(|metadata| metadata.len() > MOST) {
        let _ = file.set_len(0);
    }
    let _ = file.seek(SeekFrom::End(0));
    let _ = writeln!(file, "{}", json!({"at": at, "what": what, "why": why}));
}
