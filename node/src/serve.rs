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
    let outcome = report_during(client, work)?;
    answer(client, outcome)
}

/// The outcome of `work`, for which the client waits: meanwhile send progress. If the client goes away, which is what
/// the outer error says, `work` is asked to give up.
pub(crate) fn report_during<T: Send>(
    client: &mut Channel,
    work: impl FnOnce(&Progress) -> Result<T> + Send,
) -> Result<Result<T>> {
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
    Ok(outcome)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn whoever_waits_hears_of_it_until_the_outcome() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut client = Channel::over(far.into(), "the client").unwrap();
        let mut waiting = Channel::over(near.into(), "the node").unwrap();
        let node = thread::spawn(move || {
            answer_long(&mut client, |progress| {
                progress.enter("slow", 7);
                thread::sleep(4 * HEARTBEAT);
                Ok(42)
            })
        });
        let mut reports = Vec::new();
        let answer: u32 = waiting.answer(&mut |report| reports.push(report.clone())).unwrap();
        node.join().unwrap().unwrap();
        assert_eq!(answer, 42);
        assert!(!reports.is_empty() && reports.iter().all(|report| report.phase == "slow"));
    }
}
