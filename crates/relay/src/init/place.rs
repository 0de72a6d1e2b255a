//! Where it is set up: the work tree that the caller is in, the project that this is a part of, and the words for both in
//! the files.

use std::path::{Path, PathBuf};

use relay_core::domain::name::ProjectKey;
use relay_core::domain::shell;
use relay_core::error::Code;
use relay_core::store::Result;
use relay_store::{Home, repository};

use crate::app::App;
use crate::environment;

#[derive(Debug, Clone)]
pub struct Place {
    /// Where the files go.
    pub root: PathBuf,
    pub project: ProjectKey,
    /// What the files call this program: `relay`, or its path.
    pub relay: String,
    /// Relay's home.
    pub home: PathBuf,
    /// Where in it this project's store is: all of it that commands in a sandbox may write to. What else is there decides
    /// what hooks and the guard do, and who the human is.
    pub store: PathBuf,
    /// The user's own folder.
    pub user: PathBuf,
}

impl Place {
    pub fn find(app: &App, home: &Home) -> Result<Self> {
        let project = app.project()?;
        let root = root(app, &project)?;
        if repository::is_bare_repository(&root) {
            let text = format!(
                "{} is a bare repository, and agents have no files there; go to one of its worktrees, or name one with --project",
                root.display()
            );
            return Err(Code::InputInvalid.refuse(text).with("path", root.to_string_lossy()));
        }
        let (store, home, user) = (home.folder(&project), home.root().to_owned(), environment::user_folder());
        Ok(Place { root, project, relay: environment::own_name()?, home, store, user })
    }

    /// The main work tree, where this is a linked one.
    pub fn main(&self) -> Option<&Path> {
        let main = Path::new(self.project.as_str());
        (main != self.root && repository::work_tree(&self.root).as_deref() == Some(&*self.root)).then_some(main)
    }

    /// Whether the files hold a path of this machine where the program's name would do for all.
    pub fn names_a_path(&self) -> bool {
        self.relay.contains('/')
    }

    /// Whether a text names a path that is this machine's alone: of the program, or of relay's home.
    pub fn is_named_in(&self, text: &str) -> bool {
        let has_program = self.names_a_path() && text.contains(&self.relay);
        has_program || text.contains(&*self.home.to_string_lossy())
    }

    /// `relay hook` as one line for a shell.
    pub fn hook_line(&self) -> String {
        shell::line(&[&self.relay, "hook"])
    }

    /// Relay's home where it is not what relay takes by itself: programs that give their servers a bare environment must be
    /// told.
    pub fn unusual_home(&self) -> Option<String> {
        let usual = self.user.join(".local/state/relay");
        (self.home != usual).then(|| self.home.to_string_lossy().into_owned())
    }

    /// That a file holds a path of this machine, so that its sandbox lets commands write there.
    pub fn says_where_the_store_is(&self, file: &str) -> String {
        format!(
            "{file} names {}, the project's store on this machine, as a folder that commands in its sandbox may write to",
            self.store.display()
        )
    }
}

/// A folder that was named is meant itself; otherwise it is the work tree around the caller, if it is of this project.
fn root(app: &App, project: &ProjectKey) -> Result<PathBuf> {
    let unfound = |path: &Path, fault: std::io::Error| {
        Code::ProjectKeyInvalid
            .refuse(format!("{} cannot be found: {fault}", path.display()))
            .with("path", path.to_string_lossy())
    };
    if let Some(named) = app.globals.project.as_ref().map(Path::new) {
        return std::fs::canonicalize(named).map_err(|fault| unfound(named, fault));
    }
    let around = repository::work_tree(&environment::working_directory()?);
    let is_of_it = |root: &PathBuf| repository::resolve(root).is_ok_and(|key| key == *project);
    Ok(around.filter(is_of_it).unwrap_or_else(|| PathBuf::from(project.as_str())))
}
