//! Small commands for debugging and uncommon flows; the verbs are the default path.

use relay_core::domain::agent::Policy;
use relay_core::domain::name::{AgentName, ThreadId};
use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::{Request, ack, leave, look, policy, release, standing, start};

use super::{Asks, words};

#[derive(Debug, clap::Subcommand)]
pub enum Atom {
    /// Register an agent without looking at the situation
    #[command(
        after_help = "Example:\n  relay register --agent BlueLake\n  relay register --agent BlueLake-1 --parent BlueLake"
    )]
    Register {
        /// Register it as a subagent of this agent
        #[arg(long, value_name = "NAME")]
        parent: Option<String>,
    },
    /// Show one agent
    #[command(after_help = "Example:\n  relay whois RedForest")]
    Whois {
        /// The agent
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Choose whose mail you take
    #[command(after_help = "Example:\n  relay policy contacts_only")]
    Policy {
        /// open, auto, contacts_only or block_all
        #[arg(value_name = "POLICY")]
        policy: String,
    },
    /// Take an agent off the bus; `start` brings it back
    #[command(after_help = "Example:\n  relay retire")]
    Retire {
        /// The agent [default: yourself]
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Stop an agent from acting, until it is lifted
    #[command(after_help = "Examples:\n  relay suspend RedForest\n  relay suspend RedForest --lift")]
    Suspend {
        /// The agent
        #[arg(value_name = "NAME")]
        name: String,
        /// Let it act again
        #[arg(long)]
        lift: bool,
    },
    /// Mark messages as read
    #[command(after_help = "Example:\n  relay read 128")]
    Read {
        /// Messages by their numbers
        #[arg(value_name = "N", required = true)]
        ids: Vec<String>,
    },
    /// Renew everything you hold
    #[command(after_help = "Example:\n  relay renew --ttl 2h")]
    Renew {
        /// From now on
        #[arg(long, value_name = "TTL", default_value = "1h", allow_hyphen_values = true)]
        ttl: String,
    },
    /// Leave a thread
    #[command(after_help = "Example:\n  relay leave bd-123")]
    Leave {
        /// The thread
        #[arg(value_name = "T")]
        thread: String,
    },
}

impl Atom {
    pub fn name(&self) -> &'static str {
        match self {
            Atom::Register { .. } => "start",
            Atom::Whois { .. } => "look",
            Atom::Policy { .. } => "policy",
            Atom::Retire { .. } => "retire",
            Atom::Suspend { .. } => "suspend",
            Atom::Read { .. } => "ack",
            Atom::Renew { .. } => "release",
            Atom::Leave { .. } => "leave",
        }
    }
}

impl Asks for Atom {
    fn request(&self) -> Result<Request> {
        let name = |text: &Option<String>| text.as_deref().map(AgentName::parse).transpose();
        Ok(match self {
            Atom::Register { parent } => {
                Request::Start(start::Input { parent: name(parent)?, ..start::Input::default() })
            }
            Atom::Whois { name } => {
                Request::Look(look::Input { what: vec!["agent".to_owned(), name.clone()], ..look::Input::default() })
            }
            Atom::Policy { policy } => {
                let parsed = Policy::parse(policy).ok_or_else(|| {
                    Code::InputInvalid
                        .refuse(format!("a policy is open, auto, contacts_only or block_all, not {policy:?}"))
                })?;
                Request::Policy(policy::Input { policy: parsed })
            }
            Atom::Retire { name: who } => {
                Request::Standing(standing::Input { action: standing::Action::Retire, name: name(who)? })
            }
            Atom::Suspend { name, lift } => {
                let action = if *lift { standing::Action::Reinstate } else { standing::Action::Suspend };
                Request::Standing(standing::Input { action, name: Some(AgentName::parse(name)?) })
            }
            Atom::Read { ids } => Request::Ack(ack::Input { ids: words::numbers(ids)?, read: true }),
            Atom::Renew { ttl } => Request::Release(release::Input {
                all: true,
                renew: words::span(Some(ttl))?,
                ..release::Input::default()
            }),
            Atom::Leave { thread } => Request::Leave(leave::Input { thread: ThreadId::parse(thread)? }),
        })
    }
}
