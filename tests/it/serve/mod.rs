//! `relay serve`: the same verbs over HTTP, for those who bring a token.

mod bodies;
mod changes;
mod crowd;
mod door;
mod forged;
mod limits;
mod log;
mod remote;
mod stopping;
mod waits;
