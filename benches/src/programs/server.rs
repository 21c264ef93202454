//! One run of redis under its load: CPU time and memory are the server's alone.

use super::process::{self, Usage};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// No port, no file: the socket is named at the start.
pub(super) const OPTIONS: [&str; 8] =
    ["--port", "0", "--save", "", "--appendonly", "no", "--loglevel", "warning"];

/// Six commands on 400 bytes, 20 clients with 16 requests under way each; no preload, no randomness
/// but in the keys.
const LOAD: [&str; 13] = [
    "-q",
    "-n",
    "90000",
    "-c",
    "20",
    "-P",
    "16",
    "-r",
    "60000",
    "-d",
    "400",
    "-t",
    "set,get,lpush,hset,zadd,lpop",
];

/// How long a server may take to answer first.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server, killed where it is not waited for.
struct Server {
    child: Option<Child>,
    socket: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have died before: then there is nothing to end.
            let _ = child.kill();
            let _ = child.wait();
        }
        // A server that ends well takes its socket along.
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Starts the server, lets `client` load it, and ends it by its own command.
///
/// # Errors
/// When one of them does not start, or the client fails.
pub(super) fn run(mut command: Command, client: &Path) -> Result<Usage> {
    // Below target/ the name could be longer than a socket's may be.
    let socket = std::env::temp_dir().join(format!("homenode-bench-{}.sock", std::process::id()));
    let child = command.arg("--unixsocket").arg(&socket).spawn()?;
    let mut server = Server { child: Some(child), socket };
    let mut connection = server.connection()?;
    let load = Command::new(client)
        .env_remove("LD_PRELOAD")
        .arg("-s")
        .arg(&server.socket)
        .args(LOAD)
        .stdin(Stdio::null())
        .output()?;
    if !load.status.success() {
        let said = String::from_utf8_lossy(&load.stderr);
        return Err(Error::other(format!("the load ended with {}: {said}", load.status)));
    }
    connection.write_all(b"SHUTDOWN NOSAVE\r\n")?;
    match server.child.take() {
        Some(child) => process::wait(child),
        None => Err(ErrorKind::NotFound.into()),
    }
}

impl Server {
    /// A connection over which the server has answered.
    fn connection(&mut self) -> Result<UnixStream> {
        let began = Instant::now();
        loop {
            match ask(&self.socket) {
                Ok(stream) => return Ok(stream),
                Err(error) if began.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait()?
            {
                return Err(Error::other(format!("the server ended with {status}")));
            }
        }
    }
}

fn ask(socket: &Path) -> Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer)?;
    if answer == *b"+PONG\r\n" { Ok(stream) } else { Err(ErrorKind::InvalidData.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_at_once_is_no_server() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exit 5"]).stdin(Stdio::null());
        let error = run(command, Path::new("/bin/true")).unwrap_err().to_string();
        assert!(error.contains("exit status: 5"), "{error}");
    }
}
