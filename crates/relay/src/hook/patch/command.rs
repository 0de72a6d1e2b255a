//! A shell command, read just far enough to find the patches that it applies and the folders in which it does.

use std::path::PathBuf;

const PATCHERS: [&str; 2] = ["apply_patch", "applypatch"];

/// One word of a command.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    /// The shell would put something else in its place.
    is_open: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(Word),
    /// What a command reads, from behind `<<`.
    Document(String),
    Open,
    Close,
    /// Where one command ends and the next may begin.
    Next,
}

/// The patches that a command applies, each with the folder in which, where that can be known.
pub fn patches(text: &str) -> Vec<(Option<PathBuf>, String)> {
    let mut found = Vec::new();
    // The folder of each subshell that is open; the last one is where the command stands.
    let mut folders = vec![Some(PathBuf::new())];
    let mut words: Vec<Word> = Vec::new();
    for token in Reader::new(text).tokens() {
        match token {
            Token::Word(word) => words.push(word),
            Token::Document(patch) if is_patcher(&words) => found.push((here(&folders), patch)),
            Token::Document(_) => {}
            Token::Open => folders.push(here(&folders)),
            Token::Close | Token::Next => {
                found.extend(argument(&words).map(|patch| (here(&folders), patch)));
                step(&mut folders, &words);
                words.clear();
                if token == Token::Close && folders.len() > 1 {
                    folders.pop();
                }
            }
        }
    }
    found
}

fn here(folders: &[Option<PathBuf>]) -> Option<PathBuf> {
    folders.last().cloned().flatten()
}

fn is_patcher(words: &[Word]) -> bool {
    words.first().is_some_and(|word| PATCHERS.contains(&word.text.as_str()))
}

/// The patch that is given as a word instead of being read.
fn argument(words: &[Word]) -> Option<String> {
    is_patcher(words).then(|| words.get(1).map(|word| word.text.clone())).flatten()
}

/// Where the command stands after this one.
fn step(folders: &mut [Option<PathBuf>], words: &[Word]) {
    let ([name, rest @ ..], Some(folder)) = (words, folders.last_mut()) else { return };
    if !["cd", "pushd", "popd"].contains(&name.text.as_str()) {
        return;
    }
    let target = rest.iter().find(|word| word.text != "--");
    let target = target.filter(|word| name.text != "popd" && !word.is_open && !word.text.starts_with('-'));
    *folder = match (folder.take(), target) {
        (Some(folder), Some(word)) => Some(folder.join(&word.text)),
        (None, Some(word)) => Some(PathBuf::from(&word.text)).filter(|path| path.is_absolute()),
        (_, None) => None,
    };
}

struct Reader<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    word: Option<Word>,
    /// Documents that begin on the next line: the word that ends each, whether tabs are taken off, and its place.
    awaited: Vec<(String, bool, usize)>,
    /// The next word names the end of a document; whether tabs are taken off.
    names_end: Option<bool>,
}

impl<'a> Reader<'a> {
    fn new(rest: &'a str) -> Self {
        Reader { rest, tokens: Vec::new(), word: None, awaited: Vec::new(), names_end: None }
    }

    fn tokens(mut self) -> Vec<Token> {
        while let Some(c) = self.take() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' => self.end_line(),
                ';' | '&' | '|' => self.end_with(Token::Next),
                '(' if self.word.as_ref().is_some_and(|word| word.text.ends_with('$')) => self.substituted(),
                '(' => self.end_with(Token::Open),
                ')' => self.end_with(Token::Close),
                '<' => self.redirect(),
                '#' if self.word.is_none() => self.skip_comment(),
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '\\' => self.escaped(),
                c => self.plain(c),
            }
        }
        self.end_line();
        self.tokens
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take_if(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn plain(&mut self, c: char) {
        let word = self.word.get_or_insert_default();
        let is_home = c == '~' && word.text.is_empty();
        word.is_open |= is_home || "$`*?[{".contains(c);
        word.text.push(c);
    }

    fn escaped(&mut self) {
        match self.take() {
            // The line goes on.
            Some('\n') | None => {}
            Some(c) => self.word.get_or_insert_default().text.push(c),
        }
    }

    fn single_quoted(&mut self) {
        let (quoted, rest) = self.rest.split_once('\'').unwrap_or((self.rest, ""));
        self.word.get_or_insert_default().text.push_str(quoted);
        self.rest = rest;
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.take() {
            let word = self.word.get_or_insert_default();
            match c {
                '"' => return,
                '\\' if self.rest.starts_with(['"', '\\', '$', '`']) => word.text.extend(self.rest.chars().next()),
                c => {
                    word.is_open |= "$`".contains(c);
                    word.text.push(c);
                    continue;
                }
            }
            self.take();
        }
    }

    /// `$(…)` stands for what only the shell knows.
    fn substituted(&mut self) {
        let mut depth = 1;
        while let Some(c) = (depth > 0).then(|| self.take()).flatten() {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
        }
    }

    fn skip_comment(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
    }

    fn redirect(&mut self) {
        self.end_word();
        // `<<<` gives a word, which is no document.
        if self.take_if("<<") || !self.take_if("<") {
            return;
        }
        self.names_end = Some(self.take_if("-"));
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.names_end.take() {
            Some(takes_tabs) => {
                self.awaited.push((word.text, takes_tabs, self.tokens.len()));
                self.tokens.push(Token::Document(String::new()));
            }
            None => self.tokens.push(Token::Word(word)),
        }
    }

    fn end_with(&mut self, token: Token) {
        self.end_word();
        self.tokens.push(token);
    }

    fn end_line(&mut self) {
        self.end_with(Token::Next);
        self.names_end = None;
        for (end, takes_tabs, place) in std::mem::take(&mut self.awaited) {
            self.tokens[place] = Token::Document(self.document(&end, takes_tabs));
        }
    }

    fn document(&mut self, end: &str, takes_tabs: bool) -> String {
        let mut document = String::new();
        while !self.rest.is_empty() {
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.rest = rest;
            let line = if takes_tabs { line.trim_start_matches('\t') } else { line };
            if line.strip_suffix('\r').unwrap_or(line) == end {
                break;
            }
            document.push_str(line);
            document.push('\n');
        }
        document
    }
}
