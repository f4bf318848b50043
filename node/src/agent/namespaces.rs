//! What the agent does for containers: where their translated processes are, and compiled code for them. For units that is
//! their supervisors' to do; engines have none that we know.

use crate::error::{NodeError, Result};
use crate::protocol::{Channel, UnitRequest};
use crate::serve::answer;
use crate::unit::supply::Consumers;

pub(super) use crate::unit::namespace::list;

/// Answer what the client asks about translated processes of the PID namespace `number`, until it leaves.
pub(super) fn attach(client: &mut Channel, number: u64) -> Result<()> {
    answer(client, Ok(()))?;
    client.wait_for_frames(None)?;
    let mut consumers = Consumers::of_namespace(number);
    while let Some(frame) = client.receive_or_end::<UnitRequest>()? {
        match frame.message {
            UnitRequest::Code(request) => consumers.serve(client, request, frame.body)?,
            _ => return Err(NodeError::protocol("of a container's processes only code can be asked for")),
        }
    }
    Ok(())
}
