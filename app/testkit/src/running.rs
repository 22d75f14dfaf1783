//! Programs beside a test, and waiting for what they do.

use std::io;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// A program that runs beside the test; dropped, it is killed and waited for.
#[derive(Debug)]
pub struct Running {
    child: Option<Child>,
    id: u32,
}

impl Running {
    /// Starts a command.
    ///
    /// # Errors
    /// It could not be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.spawn()?;
        Ok(Self {
            id: child.id(),
            child: Some(child),
        })
    }

    /// Its process id.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Sends it a signal by name, as `kill -NAME` does.
    ///
    /// # Errors
    /// It has ended already, or `kill` is not there.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        let status = Command::new("kill")
            .args(["-s", name, &self.id.to_string()])
            .stderr(Stdio::null())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("{} has ended", self.id)))
        }
    }

    /// Its end, if it has come.
    ///
    /// # Errors
    /// The system cannot say.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.as_mut().map_or(Ok(None), Child::try_wait)
    }

    /// Waits for its end; gives what it wrote to pipes.
    ///
    /// # Errors
    /// The system cannot say.
    pub fn output(mut self) -> io::Result<Output> {
        let child = self.child.take();
        child.map_or_else(
            || Err(io::Error::other("waited for twice")),
            Child::wait_with_output,
        )
    }

    /// Asks it to end (SIGINT) and waits for that.
    ///
    /// # Errors
    /// The system cannot say.
    pub fn finish(self) -> io::Result<Output> {
        // One that has ended already has an output too.
        drop(self.signal("INT"));
        self.output()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended before.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Asks again and again until something is so; `false` if it is not after `timeout`.
#[expect(
    clippy::disallowed_methods,
    reason = "what other programs do takes time of the clock"
)]
pub fn until(timeout: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if begin.elapsed() > timeout {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Nanoseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the moments of what other programs do, to be compared with their records"
)]
#[must_use]
pub fn wall_clock_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    linkweir_wire::nanos(now.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_ends() {
        let mut asked = 0;
        let so = until(Duration::from_millis(20), || {
            asked += 1;
            false
        });
        assert!(!so && asked > 1);
        assert!(until(Duration::ZERO, || true));
    }
}
