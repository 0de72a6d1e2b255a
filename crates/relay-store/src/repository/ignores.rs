//! What a user wants ignored in every repository. Coding agents put their own files there, so what is not committed cannot be
//! told without it. Of the user's configuration this one path is read, and nothing else.

use std::path::{Path, PathBuf};

use super::folder::{MOST_CONFIG, read};

/// Where a user keeps what is the same in every repository.
#[derive(Debug, Clone)]
pub struct User {
    pub home: PathBuf,
    /// Where programs keep their configuration.
    pub config: PathBuf,
}

impl User {
    /// The list that git would read; it need not be there.
    pub(super) fn ignores(&self) -> PathBuf {
        // The last word counts.
        let files = [self.home.join(".gitconfig"), self.config.join("git/config")];
        let named = files.iter().find_map(|file| excludes(file));
        named.map_or_else(|| self.config.join("git/ignore"), |path| self.absolute(&path))
    }

    fn absolute(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.home.join(path),
        }
    }
}

fn excludes(file: &Path) -> Option<String> {
    let text = read(file, MOST_CONFIG)?;
    let user = gix_config::file::Metadata::from(gix_config::Source::User);
    let options = gix_config::file::init::Options::default();
    let file = gix_config::File::from_bytes_no_includes(&text, user, options).ok()?;
    file.string("core.excludesFile").map(|path| path.to_string())
}
