//! Who has opened the page. A session is a secret in a cookie, of which only the hash is kept, and only in memory: a server that
//! starts anew knows nobody, and says how the page is opened.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use relay_core::domain::event::hex;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::Random;
use relay_store::SystemRandom;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::frame::Flash;

/// How long one lasts.
const LASTS: Span = Span::seconds(12 * 60 * 60);
/// As many as there are at a time. Whoever opens one more ends the oldest.
const MOST: usize = 32;
/// How many pages of one session are told of changes at a time.
const STREAMS: usize = 16;

/// What the cookie's name begins with, and where the page is reached by https what a browser takes from nobody else.
const COOKIE: &str = "relay_page";
const SECURE_COOKIE: &str = "__Host-relay_page";

pub struct Sessions {
    all: Mutex<VecDeque<Arc<Session>>>,
    /// A browser keeps the cookies of all ports of a host together: each server has a name of its own for its cookie.
    port: u16,
}

pub struct Session {
    hash: String,
    /// It was opened by https, and is never shown otherwise.
    secure: bool,
    csrf: String,
    until: Timestamp,
    said: Mutex<Option<Flash>>,
    streams: Arc<Semaphore>,
    over: CancellationToken,
}

impl Sessions {
    /// None yet, of the server that listens on this port.
    pub fn on(port: u16) -> Self {
        Sessions { all: Mutex::default(), port }
    }

    /// Begins one, and says its secret for the only time.
    pub fn begin(&self, secure: bool, now: Timestamp) -> String {
        let secret = format!("{}{}", hex(&SystemRandom.bytes()), hex(&SystemRandom.bytes()));
        let session = Session {
            hash: hash("session", &secret),
            secure,
            csrf: hash("csrf", &secret),
            until: now.plus(LASTS),
            said: Mutex::default(),
            streams: Arc::new(Semaphore::new(STREAMS)),
            over: CancellationToken::new(),
        };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back(Arc::new(session));
        if all.len() > MOST {
            all.pop_front().iter().for_each(|oldest| oldest.over.cancel());
        }
        secret
    }

    /// The one that a request's cookies show.
    pub fn shown(&self, headers: &HeaderMap, now: Timestamp) -> Option<Arc<Session>> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|session| session.is_over(now)).for_each(|late| late.over.cancel());
        all.retain(|session| !session.is_over(now));
        // Others may have set cookies of the same name: any of them may be ours.
        self.cookies(headers).find_map(|(secure, secret)| {
            let wanted = hash("session", secret);
            let is_it = |session: &&Arc<Session>| session.secure == secure && same(&session.hash, &wanted);
            all.iter().find(is_it).cloned()
        })
    }

    pub fn end(&self, session: &Session) {
        session.over.cancel();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| !same(&known.hash, &session.hash));
    }

    pub fn end_all(&self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.drain(..).for_each(|session| session.over.cancel());
    }
}

impl Session {
    /// What every form of this session carries, and no other page can know.
    pub fn csrf(&self) -> &str {
        &self.csrf
    }

    pub fn is_csrf(&self, shown: &str) -> bool {
        same(&self.csrf, shown)
    }

    pub fn is_over(&self, now: Timestamp) -> bool {
        self.over.is_cancelled() || now >= self.until
    }

    /// Waits until somebody ends it.
    pub async fn ended(&self) {
        self.over.cancelled().await;
    }

    /// Keeps what is to be said on the next page.
    pub fn say(&self, flash: Flash) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(flash);
    }

    /// What is to be said, once.
    pub fn said(&self) -> Option<Flash> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A place for a page that is told of changes, until it is dropped.
    pub fn stream(&self) -> Option<OwnedSemaphorePermit> {
        self.streams.clone().try_acquire_owned().ok()
    }
}

impl Sessions {
    /// The header that hands a browser its session; without a secret, one that takes it back.
    pub fn cookie(&self, secret: Option<&str>, secure: bool) -> String {
        let (name, end) = if secure { (SECURE_COOKIE, "; Secure") } else { (COOKIE, "") };
        let (port, seconds) = (self.port, secret.map_or(0, |_| LASTS.as_millis() / 1_000));
        let secret = secret.unwrap_or_default();
        format!("{name}_{port}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{end}")
    }

    /// The header that takes the cookie of a session back.
    pub fn cookie_back(&self, session: &Session) -> String {
        self.cookie(None, session.secure)
    }

    /// The secrets of a request's cookies, and whether each is one of https.
    fn cookies<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = (bool, &'a str)> {
        let names = [(format!("{COOKIE}_{}", self.port), false), (format!("{SECURE_COOKIE}_{}", self.port), true)];
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter_map(move |(name, secret)| {
            let (_, secure) = names.iter().find(|(known, _)| known == name)?;
            Some((*secure, secret))
        })
    }
}

/// What is derived from a secret for one purpose says nothing about what is derived for another.
fn hash(purpose: &str, secret: &str) -> String {
    hex(&Sha256::digest(format!("relay page {purpose}\n{secret}").as_bytes()))
}

fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_794_700_800_000).plus(Span::seconds(seconds))
    }

    fn headers(cookies: &str) -> HeaderMap {
        let value = HeaderValue::from_str(cookies).unwrap_or_else(|fault| panic!("{fault}"));
        HeaderMap::from_iter([(header::COOKIE, value)])
    }

    #[test]
    fn a_session_is_shown_by_its_own_cookie_until_it_is_over() {
        let sessions = Sessions::on(7717);
        let (plain, secure) = (sessions.begin(false, at(0)), sessions.begin(true, at(0)));
        assert_eq!(plain.len(), 64, "32 bytes");
        let is_shown = |cookies: &str, seconds: i64| sessions.shown(&headers(cookies), at(seconds)).is_some();
        let cases = [
            (format!("relay_page_7717={plain}"), true),
            (format!("a=b; relay_page_7717={plain}"), true),
            (format!("relay_page_7717={}; relay_page_7717={plain}", "0".repeat(64)), true),
            (format!("__Host-relay_page_7717={secure}"), true),
            (format!("relay_page_7717={secure}"), false),
            (format!("__Host-relay_page_7717={plain}"), false),
            (format!("relay_page_7717={}", &plain[1..]), false),
            (format!("other={plain}"), false),
            ("relay_page_7717=".to_owned(), false),
            (format!("relay_page={plain}"), false),
            (format!("relay_page_7718={plain}"), false),
        ];
        for (cookies, expected) in &cases {
            assert_eq!(is_shown(cookies, 0), *expected, "{cookies}");
        }
        assert!(is_shown(&cases[0].0, 12 * 60 * 60 - 1));
        assert!(!is_shown(&cases[0].0, 12 * 60 * 60));
    }

    #[test]
    fn a_session_ends_for_good_and_the_oldest_makes_room() {
        let sessions = Sessions::on(7717);
        let secrets: Vec<String> = (0..MOST).map(|_| sessions.begin(false, at(0))).collect();
        let shown = |secret: &str| sessions.shown(&headers(&format!("relay_page_7717={secret}")), at(0));
        let (first, second) = (shown(&secrets[0]).expect("it is there"), shown(&secrets[1]).expect("it is there"));
        sessions.begin(false, at(0));
        assert!(shown(&secrets[0]).is_none() && first.is_over(at(0)), "one too many");
        sessions.end(&second);
        assert!(shown(&secrets[1]).is_none() && second.is_over(at(0)));
        let last = shown(&secrets[2]).expect("it is there");
        sessions.end_all();
        assert!(secrets.iter().all(|secret| shown(secret).is_none()) && last.is_over(at(0)));
    }

    #[test]
    fn every_session_has_a_token_of_its_own_which_is_not_its_secret() {
        let sessions = Sessions::on(7717);
        let secrets = [sessions.begin(false, at(0)), sessions.begin(false, at(0))];
        let [one, other] = secrets
            .each_ref()
            .map(|secret| sessions.shown(&headers(&format!("relay_page_7717={secret}")), at(0)).expect("it is there"));
        assert!(one.is_csrf(one.csrf()) && !one.is_csrf(other.csrf()) && !one.is_csrf("") && !one.is_csrf(&secrets[0]));
        assert!(!one.csrf().contains(&one.hash));
    }

    #[test]
    fn what_is_said_is_said_once() {
        let sessions = Sessions::on(7717);
        let secret = sessions.begin(false, at(0));
        let session = sessions.shown(&headers(&format!("relay_page_7717={secret}")), at(0)).expect("it is there");
        session.say(Flash { text: "Sent.".to_owned(), ..Flash::default() });
        assert_eq!(session.said().map(|flash| flash.text).as_deref(), Some("Sent."));
        assert_eq!(session.said(), None);
    }
}
