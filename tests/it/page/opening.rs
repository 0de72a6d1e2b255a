//! `relay serve --open`: a link, and a browser that gets it.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::{FORM, bring};
use crate::bus::{Bus, run};
use crate::listening::{Server, serve};
use crate::privilege;
use crate::terminal::text;

/// A browser that writes down what it is given, and when it is through.
fn browser(bus: &Bus) -> String {
    let path = bus.path("browser");
    let seen = bus.path("seen");
    let script =
        format!("#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" >'{0}.new'\nmv '{0}.new' '{0}'\necho noise\n", seen.display());
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What it was given, once it was.
fn seen(bus: &Bus) -> Vec<String> {
    let path = bus.path("seen");
    while !path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let lines = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    std::fs::remove_file(path).unwrap();
    lines
}

#[test]
fn the_page_is_opened_in_a_browser_by_a_link_that_works() {
    let bus = Bus::with(&["BlueLake"]);
    let (program, human) = (browser(&bus), bus.home().join("human"));
    assert!(!human.exists());
    let mut command = serve(&bus, &["--open"]);
    command.env("BROWSER", &program);
    let server = Server::run(&bus, command);
    let given = seen(&bus);
    assert_eq!(given[0], "1", "the link and nothing else: {given:?}");
    let code = given[1].strip_prefix(&format!("{}/open#", server.url)).unwrap_or_else(|| panic!("{given:?}"));
    assert_eq!(std::fs::metadata(&human).unwrap().permissions().mode() & 0o777, 0o600, "one is the human now");
    let secret = std::fs::read_to_string(&human).unwrap();
    assert!(!given[1].contains(secret.trim()));
    assert_eq!(bring(&server, code).status, 303);
    // A second command opens the page of the server that runs, and ends.
    let mut again = bus.args("", ["serve", "--open", "--listen", server.address()]);
    again.env("BROWSER", format!("{program} --new-window %s"));
    let said = run(again).success().result();
    let given = seen(&bus);
    assert_eq!(
        (given[0].as_str(), given[1].as_str(), &given[2]),
        ("2", "--new-window", &text(&said["page"])),
        "{given:?}"
    );
    let code = given[2].split('#').nth(1).unwrap();
    assert_eq!(bring(&server, code).status, 303);
}

/// Several may be named: the first that starts gets the link, and the others do not.
#[test]
fn of_several_browsers_the_first_that_starts_gets_the_link() {
    let bus = Bus::with(&["BlueLake"]);
    let (program, broken) = (browser(&bus), bus.path("broken"));
    std::fs::write(&broken, "#!/nonexistent/interpreter\n").unwrap();
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = serve(&bus, &["--open"]);
    command.env("BROWSER", format!("/nonexistent/browser:{} %s:{program} --app=%s:{program} second", broken.display()));
    let server = Server::run(&bus, command);
    let given = seen(&bus);
    let code = given[1].strip_prefix(&format!("--app={}/open#", server.url)).unwrap_or_else(|| panic!("{given:?}"));
    assert_eq!(bring(&server, code).status, 303);
    let mut none = bus.args("", ["serve", "--open", "--listen", server.address()]);
    none.env("BROWSER", &broken);
    let said = run(none).success();
    assert!(said.stderr.contains("No browser can be started; open the link yourself."), "{said:?}");
}

/// Another user of this machine who has read the link in the arguments of the browser, and is faster.
#[test]
fn a_link_that_a_browser_was_given_is_of_no_use_to_another_user() {
    let bus = Bus::with(&["BlueLake"]);
    let mut command = serve(&bus, &["--open"]);
    command.env("BROWSER", browser(&bus));
    let server = Server::run(&bus, command);
    let shown = seen(&bus)[1].split('#').nth(1).unwrap().to_owned();
    let refused = brought_by_another(&server, &shown);
    assert!(refused.starts_with("HTTP/1.1 401") && !refused.to_ascii_lowercase().contains("set-cookie"), "{refused}");
    assert_eq!(bring(&server, &shown).status, 303, "and it is still there for whom it was made");
    // Where no browser is given it nobody has seen it, and whoever has it was told.
    let mut printed = bus.args("", ["serve", "--open", "--listen", server.address()]);
    printed.env("BROWSER", "/nonexistent/browser");
    let link = text(&run(printed).success().result()["page"]);
    let opened = brought_by_another(&server, link.split('#').nth(1).unwrap());
    assert!(opened.starts_with("HTTP/1.1 303"), "{opened}");
}

/// What a server answers to another user who brings a code.
fn brought_by_another(server: &Server<'_>, code: &str) -> String {
    let body = format!("code={code}");
    let head = format!(
        "POST /open HTTP/1.1\r\nhost: {0}\r\norigin: {1}\r\ncontent-type: {2}\r\ncontent-length: {3}\r\nconnection: close\r\n\r\n{body}",
        server.address(),
        server.url,
        FORM.1,
        body.len()
    );
    let (host, port) = server.address().split_once(':').unwrap();
    let mut command = std::process::Command::new("bash");
    command
        .args(["-c", r#"exec 3<>"/dev/tcp/$0/$1" && printf %s "$2" >&3 && cat <&3"#, host, port, &head])
        .current_dir("/");
    let output = privilege::as_somebody_else(&command).output().unwrap();
    let fault = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{fault}\nthis needs root or subordinate ids; run `{}`", privilege::AS_ROOT);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A terminal of a person, and a machine without a browser.
#[test]
fn where_there_is_no_browser_the_link_is_said() {
    let bus = Bus::with(&["BlueLake"]);
    let mut command = bus.command();
    command.args(["serve", "--open", "--listen", "127.0.0.1:0"]).env("PATH", bus.path("nothing"));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let url = next().strip_prefix("Listening on ").unwrap().trim_end_matches("/mcp").to_owned();
    assert!(next().starts_with(&format!("The page: {url}/open#")));
    assert!(next().contains("open it yourself"));
    let mut again = bus.command();
    again
        .args(["serve", "--open", "--listen", url.trim_start_matches("http://")])
        .env("BROWSER", "/nonexistent/browser");
    let said = run(again).success();
    assert!(said.stdout.contains("already") && said.stdout.contains(&format!("{url}/open#")), "{said:?}");
    assert!(said.stdout.contains("open it yourself"), "{said:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_plain_server_says_how_the_page_is_opened_and_no_code() {
    let bus = Bus::with(&["BlueLake"]);
    let mut command = bus.command();
    let mut child = command.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut first = [0; 16 * 1024];
    let mut said = String::new();
    while !said.contains("The page:") {
        let count = out.read(&mut first).unwrap();
        assert!(count > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&first[..count]));
    }
    assert!(said.contains("The page: relay serve --open\n") && !said.contains('#'), "{said}");
    assert!(!bus.home().join("human").exists() && !bus.home().join("pages").exists());
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Something else listens there: it gets no code, and the command says what it always said.
#[test]
fn where_something_else_listens_it_fails_as_ever() {
    let bus = Bus::with(&["BlueLake"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let count = stream.read(&mut head).unwrap();
        std::io::Write::write_all(
            &mut stream,
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
        )
        .unwrap();
        String::from_utf8_lossy(&head[..count]).into_owned()
    });
    let mut command = bus.args("", ["serve", "--open", "--listen", &address]);
    command.env("BROWSER", browser(&bus));
    let refused = run(command).fails("INPUT_INVALID");
    assert!(refused.stdout.contains("cannot be listened on"), "{}", refused.stdout);
    assert!(other.join().unwrap().starts_with("GET /open HTTP/1.1\r\n"), "it was only looked at");
    assert!(!bus.path("seen").exists());
    let pages = bus.home().join("pages");
    assert!(!pages.exists() || std::fs::read_dir(pages).unwrap().count() == 0, "no code was made");
}

/// Another user of this machine serves a page of their own there: nobody is led to believe it.
#[test]
fn the_page_of_another_user_is_not_opened() {
    let bus = Bus::with(&["BlueLake"]);
    let relay = privilege::binary_for_all(&bus.path(""));
    let home = bus.path("theirs");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut theirs = std::process::Command::new(relay);
    bus.environment(&mut theirs);
    theirs.env("RELAY_HOME", home.join("home")).args(["--json", "serve", "--listen", "127.0.0.1:0"]).current_dir("/");
    let mut child = privilege::as_somebody_else(&theirs).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|fault| panic!("{fault}: {line:?}"));
    let url = text(&said["result"]["url"]);
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut command = bus.args("", ["serve", "--open", "--listen", address]);
    command.env("BROWSER", browser(&bus));
    let refused = run(command).fails("INPUT_INVALID");
    assert!(refused.stdout.contains("cannot be listened on"), "{}", refused.stdout);
    assert!(!bus.path("seen").exists() && !bus.home().join("pages").exists(), "no code was made");
    child.kill().unwrap();
    child.wait().unwrap();
}
