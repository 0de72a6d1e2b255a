//! Whose process is at the other end of a connection that comes from this machine: the kernel's list of sockets says it of each.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where the kernel lists them. A socket for both kinds of addresses is in the second.
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// A list that changes while it is read may miss one that is there.
const LOOKS: usize = 3;
/// Which words of a line say where a socket is, where it leads, and whose it is.
const LOCAL: usize = 1;
const REMOTE: usize = 2;
const USER: usize = 7;

/// Both ends of a connection, as the one that accepted it sees them.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    pub theirs: SocketAddr,
    pub ours: SocketAddr,
}

impl Ends {
    /// Whether the other end is no other user's. Root could have all that we have. One that came by the loopback and that this
    /// system does not know is the other half of a machine in two halves; one from elsewhere may be anybody's.
    pub fn are_of_one_user(&self) -> bool {
        match (0..LOOKS).find_map(|_| self.owner()) {
            Some(user) => user == 0 || user == rustix::process::geteuid().as_raw(),
            None => self.theirs.ip().to_canonical().is_loopback(),
        }
    }

    fn owner(&self) -> Option<u32> {
        LISTS.iter().find_map(|list| self.owner_in(&fs::read_to_string(list).ok()?))
    }

    fn owner_in(&self, list: &str) -> Option<u32> {
        let is_it = |words: &Vec<&str>| {
            let is_at = |word: usize, end: SocketAddr| words.get(word).and_then(|text| place(text)) == Some(plain(end));
            is_at(LOCAL, self.theirs) && is_at(REMOTE, self.ours)
        };
        let found = list.lines().map(|line| line.split_whitespace().collect()).find(is_it)?;
        found.get(USER)?.parse().ok()
    }
}

/// The same place, however its address is written.
fn plain(end: SocketAddr) -> (IpAddr, u16) {
    (end.ip().to_canonical(), end.port())
}

/// An address of the list: words of 32 bits as they lie in memory, in hexadecimal, and a port.
fn place(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?)).to_canonical()
        }
        _ => return None,
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Both ends of a connection that is made here, and those who keep it.
    fn connected(listen: &str, to: &str) -> std::io::Result<(Ends, [TcpStream; 2])> {
        let listener = TcpListener::bind(listen)?;
        let stream = TcpStream::connect(format!("{to}:{}", listener.local_addr()?.port()))?;
        let (accepted, theirs) = listener.accept()?;
        Ok((Ends { theirs, ours: accepted.local_addr()? }, [stream, accepted]))
    }

    #[test]
    fn the_owner_of_a_socket_is_who_made_it() -> std::io::Result<()> {
        let me = rustix::process::geteuid().as_raw();
        for (listen, to) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "[::1]"), ("[::]:0", "127.0.0.1")] {
            let (ends, held) = connected(listen, to)?;
            assert_eq!(ends.owner(), Some(me), "{ends:?}");
            assert!(ends.are_of_one_user(), "{ends:?}");
            drop(held);
        }
        Ok(())
    }

    #[test]
    fn a_line_of_the_list_is_read_as_the_kernel_writes_it() {
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let (v4, lo) = (word([127, 0, 0, 1]), word([0, 0, 0, 1]));
        let mapped = format!("{0}{0}{1}{v4}", word([0; 4]), word([0, 0, 0xff, 0xff]));
        let v6 = format!("{0}{0}{0}{lo}", word([0; 4]));
        let check = |list: &str, theirs: &str, ours: &str, expected: Option<u32>| {
            let end = |text: &str| text.parse().unwrap_or_else(|fault| panic!("{text}: {fault}"));
            assert_eq!(Ends { theirs: end(theirs), ours: end(ours) }.owner_in(list), expected, "{theirs} {ours}");
        };
        let line = |from: &str, to: &str, user: u32| {
            format!("   3: {from}:C350 {to}:1E25 01 00000000:00000000 00:00000000 00000000 {user:>5} 0 81234 1\n")
        };
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let list = format!("{head}{}{}", line(&v4, &v4, 1000), line(&v6, &v6, 1001));
        check(&list, "127.0.0.1:50000", "127.0.0.1:7717", Some(1000));
        check(&list, "[::ffff:127.0.0.1]:50000", "127.0.0.1:7717", Some(1000));
        check(&list, "[::1]:50000", "[::1]:7717", Some(1001));
        check(&list, "127.0.0.1:50001", "127.0.0.1:7717", None);
        check(&list, "127.0.0.1:50000", "127.0.0.1:7718", None);
        check(&list, "127.0.0.1:7717", "127.0.0.1:50000", None);
        check(&line(&mapped, &mapped, 7), "127.0.0.1:50000", "127.0.0.1:7717", Some(7));
        check("nonsense\n\n3: 0100007F 0100007F\n", "127.0.0.1:50000", "127.0.0.1:7717", None);
    }

    /// Whoever is not listed is of another machine, but for the loopback.
    #[test]
    fn one_from_elsewhere_may_be_anybody() {
        let end = |text: &str| text.parse().unwrap_or_else(|fault| panic!("{text}: {fault}"));
        assert!(!Ends { theirs: end("192.0.2.7:50000"), ours: end("192.0.2.1:7717") }.are_of_one_user());
        assert!(Ends { theirs: end("127.0.0.1:1"), ours: end("127.0.0.1:1") }.are_of_one_user());
    }
}
