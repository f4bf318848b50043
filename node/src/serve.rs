//! Serving requests: long ones on a thread of their own, while this one reports progress and notices when the client
//! is gone.

use crate::error::{NodeError, Result};
use crate::progress::Progress;
use crate::protocol::{Channel, HEARTBEAT, Reply};
use serde::Serialize;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

/// Do `work` and send its outcome; meanwhile send progress. If the client goes away, `work` is asked to give up.
pub(crate) fn answer_long<T: Serialize + Send>(
    client: &mut Channel,
    work: impl FnOnce(&Progress) -> Result<T> + Send,
) -> Result<()> {
    let progress = Progress::default();
    let (done, outcome) = channel();
    let (outcome, client_is_gone) = thread::scope(|scope| {
        scope.spawn(|| done.send(work(&progress)));
        let mut gone = Ok(());
        loop {
            match outcome.recv_timeout(HEARTBEAT) {
                Ok(outcome) => return (outcome, gone),
                Err(RecvTimeoutError::Timeout) if gone.is_ok() => {
                    gone = client.send(&Reply::Progress(progress.report()));
                    if gone.is_err() {
                        progress.cancel();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return (Err(NodeError::io("working", "a thread of the node died")), gone);
                }
            }
        }
    });
    client_is_gone?;
    answer(client, outcome)
}

/// Send an outcome.
pub(crate) fn answer<T: Serialize>(client: &mut Channel, outcome: Result<T>) -> Result<()> {
    let reply = outcome.and_then(|answer| Reply::done(&answer));
    client.send(&reply.unwrap_or_else(Reply::Error))
}

/// Send bytes, as body.
pub(crate) fn answer_with_body(client: &mut Channel, outcome: Result<Vec<u8>>) -> Result<()> {
    match outcome {
        Ok(bytes) => client.send_with_body(&Reply::done(&())?, &bytes),
        Err(error) => client.send(&Reply::Error(error)),
    }
}
