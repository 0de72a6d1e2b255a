//! `guard`: the hooks of git that ask relay, through the real git. Nobody here calls relay where a hook would.

mod hooks;
mod managers;
mod met;
mod open;
mod yard;
