//! What the pages are dressed with: one style, one script, one picture. They are in the program, and their addresses carry the
//! hash of what they hold, so that a browser may keep them for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use relay_core::domain::event::hex;
use sha2::{Digest, Sha256};

pub const ROUTE: &str = "/assets/{name}";

/// How much of a hash tells two versions apart.
const VERSION: usize = 12;

struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
    version: String,
}

static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    [
        asset("relay.css", "text/css; charset=utf-8", include_str!("../../assets/relay.css")),
        asset("relay.js", "text/javascript; charset=utf-8", include_str!("../../assets/relay.js")),
        asset("icon.svg", "image/svg+xml", include_str!("../../assets/icon.svg")),
    ]
});

fn asset(name: &'static str, kind: &'static str, text: &'static str) -> Asset {
    let version = hex(&Sha256::digest(text))[..VERSION].to_owned();
    Asset { name, kind, text, version }
}

fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

/// Where it is, in the version that this program has.
pub fn address(name: &str) -> String {
    let version = find(name).map(|asset| asset.version.as_str()).unwrap_or_default();
    format!("/assets/{name}?v={version}")
}

pub async fn give(Path(name): Path<String>) -> Response {
    match find(&name) {
        Some(asset) => {
            let kept = "public, max-age=31536000, immutable";
            ([(header::CONTENT_TYPE, asset.kind), (header::CACHE_CONTROL, kept)], asset.text).into_response()
        }
        None => (StatusCode::NOT_FOUND, "there is no such thing\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_changes_with_what_it_leads_to() {
        let one = asset("a", "text/plain", "one");
        let other = asset("a", "text/plain", "other");
        assert_ne!(one.version, other.version);
        assert_eq!(address("relay.css").len(), "/assets/relay.css?v=".len() + VERSION);
    }

    /// Whatever they named would be asked of somebody else.
    #[test]
    fn nothing_comes_from_elsewhere() {
        for asset in ASSETS.iter() {
            let text = asset.text.replace("http://www.w3.org/2000/svg", "");
            for foreign in ["http://", "https://", "url(", "@import", "innerHTML", "eval("] {
                assert!(!text.contains(foreign), "{} has {foreign}", asset.name);
            }
        }
    }
}
