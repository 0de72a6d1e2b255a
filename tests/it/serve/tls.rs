//! Something that encrypts stands before the server, and the command line speaks to it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::bus::{Bus, letter, run};
use crate::listening::Server;
use crate::outside;

/// Does TLS for a server. It does not outlive the test.
struct Front {
    child: Child,
    url: String,
}

impl Front {
    fn of(server: &Server<'_>) -> Self {
        let bus = server.bus;
        let made = Command::new("openssl")
            .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split(' '))
            .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-keyout", "key.pem", "-out", "certificate.pem"])
            .current_dir(bus.path(""))
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let (host, port) = server.address().split_once(':').unwrap();
        let mut child = Command::new("python3")
            .arg(outside::scripts().join("tls.py"))
            .args(["certificate.pem", "key.pem", host, port])
            .current_dir(bus.path(""))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Front { child, url: format!("https://localhost:{}", port.trim()) }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_behind_tls_is_reached_by_whoever_trusts_its_certificate() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let server = Server::start(&bus);
    let front = Front::of(&server);
    let towards = |url: &str, trusted: Option<&str>| {
        let mut command = server.args("BlueLake", &letter("RedForest"));
        command.env("RELAY_URL", url);
        if let Some(trusted) = trusted {
            command.env("SSL_CERT_FILE", bus.path(trusted));
        }
        run(command)
    };
    towards(&front.url, Some("certificate.pem")).success();
    towards(&format!("{}/mcp", front.url), Some("certificate.pem")).success();
    assert_eq!(bus.inbox("RedForest").len(), 2);
    // Whoever is not known is told nothing, not even the token.
    let strange = towards(&front.url, None).fails("STORE_UNREACHABLE");
    assert!(strange.stdout.contains("certificate"), "{}", strange.stdout);
    let by_another_name = front.url.replace("localhost", "127.0.0.1");
    towards(&by_another_name, Some("certificate.pem")).fails("STORE_UNREACHABLE");
    towards(&front.url.replace("https", "http"), None).fails("STORE_IO");
    assert_eq!(bus.inbox("RedForest").len(), 2);
}
