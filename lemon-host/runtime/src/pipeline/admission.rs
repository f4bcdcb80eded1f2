//! Whether a call is made, and with which arguments: gates first, then approval of what will really run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::value::RawValue;

use crate::arguments::canonical;
use crate::error::CallError;
use crate::limits::Limits;
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
        // Within the future, so that a panic of the function itself is caught as well.
        let review = AssertUnwindSafe(async { gate.review(request).await }).catch_unwind();
        let reason = match review.await {
            Ok(Verdict::Allow) => continue,
            Ok(Verdict::Replace { arguments }) => match canonical(arguments.get(), limits) {
                Ok(replaced) => {
                    in_place = Some(replaced);
                    continue;
                }
                Err(fault) => format!("the arguments that it put in place are not acceptable: {fault}"),
            },
            Ok(Verdict::Block { reason }) => reason,
            Err(_) => "it failed, and a gate that fails blocks".to_owned(),
        };
        return Err(CallError::Denied { reason: format!("gate {} blocked it: {reason}", gate.name()) });
    }
    if *request.caller == Caller::Program {
        return Ok(in_place);
    }
    let request = CallRequest { arguments: in_place.as_deref().unwrap_or(sent), ..request };
    let approval = AssertUnwindSafe(async { approver.approve(request).await }).catch_unwind();
    match approval.await {
        Ok(Approval::Allow) => Ok(in_place),
        Ok(Approval::Deny { reason }) => Err(CallError::Denied { reason }),
        Err(_) => Err(CallError::Denied { reason: "whoever approves calls failed".to_owned() }),
    }
}
