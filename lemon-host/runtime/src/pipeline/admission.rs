//! Whether a call is made, and with which arguments: gates first, then approval of what will really run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::value::RawValue;

use crate::arguments::canonical;
use crate::error::CallError;
use crate::limits::Limits;
use crate::report::PluginText;
use crate::seams::{Approval, Approver, CallRequest, Caller, Gate, Verdict};

/// Asks all gates about the request and, for a call that the program does not make itself, the approver about what will
/// run. Gives the arguments that gates put in place of those that were sent, if any did.
///
/// # Errors
/// [`CallError::Denied`] with who refused the call and why.
pub(super) async fn admit(
    gates: &[Arc<dyn Gate>],
    approver: &dyn Approver,
    request: CallRequest<'_>,
    sent: &RawValue,
    limits: &Limits,
) -> Result<Option<Box<RawValue>>, CallError> {
    let mut in_place = None;
    for gate in gates {
        // Within the future, so that a panic of the functions themselves is caught as well.
        let review = AssertUnwindSafe(async { (gate.name().to_owned(), gate.review(request).await) }).catch_unwind();
        let refused = match review.await {
            Ok((_, Verdict::Allow)) => continue,
            Ok((name, Verdict::Replace { arguments })) => match canonical(arguments.get(), limits) {
                Ok(replaced) => {
                    in_place = Some(replaced);
                    continue;
                }
                Err(fault) => {
                    format!("the arguments that gate {name} put in place are not acceptable: {fault}")
                }
            },
            Ok((name, Verdict::Block { reason })) => format!("gate {name} blocked it: {reason}"),
            Err(_) => "a gate failed, and a gate that fails blocks".to_owned(),
        };
        return Err(denied(&refused));
    }
    if *request.caller == Caller::Program {
        return Ok(in_place);
    }
    let request = CallRequest { arguments: in_place.as_deref().unwrap_or(sent), ..request };
    let approval = AssertUnwindSafe(async { approver.approve(request).await }).catch_unwind();
    match approval.await {
        Ok(Approval::Allow) => Ok(in_place),
        Ok(Approval::Deny { reason }) => Err(denied(&reason)),
        Err(_) => Err(denied("whoever approves calls failed")),
    }
}

fn denied(reason: &str) -> CallError {
    /// A reason is read by a person or a model.
    const REASON: usize = 500;
    CallError::Denied { reason: PluginText::new(reason.chars().take(REASON).collect::<String>()) }
}
