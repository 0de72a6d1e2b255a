//! What the frame of a screen says of itself: addresses, and the entries of the navigation.

use relay_core::domain::plain;

use super::words;
use crate::web::assets;
use crate::web::form::Form;
use crate::web::frame::{Flash, Frame, Place, Screen};

/// As many projects as the switcher shows; the list of all is a page of its own.
const SWITCHED: usize = 20;

/// An entry of the navigation.
pub struct Entry {
    pub screen: Screen,
    pub word: &'static str,
    pub path: &'static str,
    /// The key that leads there, after `g`.
    pub key: &'static str,
}

const ENTRIES: [Entry; 9] = [
    Entry { screen: Screen::Now, word: "Now", path: "", key: "n" },
    Entry { screen: Screen::Threads, word: "Threads", path: "threads", key: "t" },
    Entry { screen: Screen::Agents, word: "Agents", path: "agents", key: "a" },
    Entry { screen: Screen::Reservations, word: "Reservations", path: "reservations", key: "r" },
    Entry { screen: Screen::Contacts, word: "Contacts", path: "contacts", key: "c" },
    Entry { screen: Screen::History, word: "History", path: "history", key: "h" },
    Entry { screen: Screen::Replay, word: "Replay", path: "replay", key: "d" },
    Entry { screen: Screen::Talk, word: "Talk", path: "talk", key: "k" },
    Entry { screen: Screen::Search, word: "Search", path: "search", key: "s" },
];

impl Place {
    /// The folder's name, which is what people call a project.
    pub fn name(&self) -> String {
        let last = self.key.rsplit('/').find(|part| !part.is_empty());
        plain::escape_line(last.unwrap_or(&self.key))
    }

    pub fn shown_key(&self) -> String {
        plain::escape_line(&self.key)
    }

    pub fn address(&self) -> String {
        format!("/p/{}/", words::part(&self.slug))
    }
}

impl Frame<'_> {
    /// The address of a screen of this project.
    pub fn to(&self, path: &str) -> String {
        match &self.project {
            Some(place) => format!("{}{path}", place.address()),
            None => "/".to_owned(),
        }
    }

    /// The address of a thread, an agent or a message.
    pub fn one(&self, noun: &str, name: impl std::fmt::Display) -> String {
        format!("{}/{}", self.to(noun), words::part(&name.to_string()))
    }

    pub fn fresh_key(&self) -> String {
        (self.key)()
    }

    pub fn entries(&self) -> &'static [Entry] {
        &ENTRIES
    }

    pub fn is_at(&self, screen: &Screen) -> bool {
        self.here == *screen
    }

    pub fn is_writing(&self) -> bool {
        self.here == Screen::Write
    }

    /// Somebody is here who may act.
    pub fn is_open(&self) -> bool {
        !self.csrf.is_empty()
    }

    /// The project that is shown, and others that can be; those first in which something waits for the human.
    pub fn switched(&self) -> Vec<&Place> {
        let mut places: Vec<&Place> = self.waiting_first();
        places.sort_by_key(|place| !self.is_shown(place));
        places.truncate(SWITCHED);
        places
    }

    /// All projects, those first in which something waits for the human.
    pub fn waiting_first(&self) -> Vec<&Place> {
        let mut places: Vec<&Place> = self.projects.iter().collect();
        places.sort_by_key(|place| place.waiting == 0);
        places
    }

    /// How many decisions wait in the project that is shown.
    pub fn waiting(&self) -> usize {
        self.project.as_ref().map_or(0, |place| place.waiting)
    }

    /// And how many in all the others.
    pub fn waiting_elsewhere(&self) -> usize {
        self.projects.iter().filter(|place| !self.is_shown(place)).map(|place| place.waiting).sum()
    }

    pub fn is_shown(&self, place: &Place) -> bool {
        self.project.as_ref().is_some_and(|shown| shown.slug == place.slug)
    }

    /// The path of this page without its query: where a form that asks again goes.
    pub fn asked(&self) -> &str {
        self.path.split_once('?').map_or(self.path, |(path, _)| path)
    }

    /// A list is shown further on than it begins.
    pub fn is_further(&self) -> bool {
        let query = self.path.split_once('?').map(|(_, query)| query).unwrap_or_default();
        query.split('&').any(|field| field.starts_with("before=") || field.starts_with("after="))
    }

    /// What is looked for on this page.
    pub fn sought(&self) -> String {
        let query = self.path.split_once('?').map(|(_, query)| query).filter(|_| self.here == Screen::Search);
        Form::of_query(query).text("words").unwrap_or_default().to_owned()
    }

    pub fn style(&self) -> String {
        assets::address("relay.css")
    }

    pub fn script(&self) -> String {
        assets::address("relay.js")
    }

    pub fn icon(&self) -> String {
        assets::address("icon.svg")
    }
}

impl Flash {
    pub fn shown_text(&self) -> String {
        plain::escape(&self.text)
    }

    pub fn shown_signals(&self) -> impl Iterator<Item = String> {
        self.signals.iter().map(|signal| plain::escape(signal))
    }
}
