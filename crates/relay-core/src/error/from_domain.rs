//! How the faults of values become refusals.

use super::{Code, Refusal};
use crate::domain::name::{NameFault, ThreadFault};
use crate::domain::pattern::PatternFault;
use crate::domain::time::{MomentFault, SpanFault};

impl From<NameFault> for Refusal {
    fn from(fault: NameFault) -> Refusal {
        Code::AgentNameInvalid.refuse(fault.to_string())
    }
}

impl From<ThreadFault> for Refusal {
    fn from(fault: ThreadFault) -> Refusal {
        Code::ThreadIdInvalid.refuse(fault.to_string())
    }
}

impl From<SpanFault> for Refusal {
    fn from(fault: SpanFault) -> Refusal {
        Code::InputInvalid.refuse(fault.to_string())
    }
}

impl From<MomentFault> for Refusal {
    fn from(fault: MomentFault) -> Refusal {
        Code::InputInvalid.refuse(fault.to_string())
    }
}

impl From<PatternFault> for Refusal {
    fn from(fault: PatternFault) -> Refusal {
        let code = match fault {
            PatternFault::Invalid { .. } => Code::PatternInvalid,
            PatternFault::Outside { .. } => Code::PatternOutsideProject,
        };
        code.refuse(fault.to_string())
    }
}
