//! Whose process is at the other end of a connection that comes from this machine, and whose listens: the kernel's list of sockets
//! says it of each.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where the kernel lists them. A socket for both kinds of addresses is in the second.
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// A list that changes while it is read may miss one that is there.
const LOOKS: usize = 3;
/// The state of one that listens.
const LISTENS: &str = "0A";

/// Both ends of a connection, as the one that accepted it sees them.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    pub theirs: SocketAddr,
    pub ours: SocketAddr,
}

impl Ends {
    /// Whether the other end is no other user's. One that came by the loopback and that this system does not know is of whatever
    /// it runs in; one from elsewhere may be anybody's, and so may all of them where there is no list.
    pub fn are_of_one_user(&self) -> bool {
        let mut has_list = false;
        let owner = (0..LOOKS).flat_map(|_| lists()).find_map(|list| {
            has_list = true;
            self.owner_in(&list)
        });
        owner.map_or(has_list && self.theirs.ip().to_canonical().is_loopback(), is_ours)
    }

    fn owner_in(&self, list: &str) -> Option<u32> {
        let (theirs, ours) = (plain(self.theirs), plain(self.ours));
        sockets(list).find(|socket| socket.local == theirs && socket.remote == ours).map(|socket| socket.user)
    }
}

/// Whether another user's process listens there.
pub fn is_strangers(listens: SocketAddr) -> bool {
    lists().any(|list| listeners_in(&list, listens).any(|user| !is_ours(user)))
}

/// Whose processes listen there, by their own address or by all.
fn listeners_in(list: &str, listens: SocketAddr) -> impl Iterator<Item = u32> {
    let (address, port) = plain(listens);
    let is_there = move |(ip, at): (IpAddr, u16)| at == port && (ip == address || ip.is_unspecified());
    sockets(list).filter(move |socket| socket.listens && is_there(socket.local)).map(|socket| socket.user)
}

/// Root could have all that we have.
fn is_ours(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

fn lists() -> impl Iterator<Item = String> {
    LISTS.iter().filter_map(|list| fs::read_to_string(list).ok())
}

struct Socket {
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    listens: bool,
    user: u32,
}

impl Socket {
    /// From a line of the list; its first one and what is no line of it is none.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(1);
        let (local, remote) = (place(words.next()?)?, place(words.next()?)?);
        let listens = words.next()? == LISTENS;
        Some(Socket { local, remote, listens, user: words.nth(3)?.parse().ok()? })
    }
}

fn sockets(list: &str) -> impl Iterator<Item = Socket> {
    list.lines().filter_map(Socket::read)
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
            assert_eq!(lists().find_map(|list| ends.owner_in(&list)), Some(me), "{ends:?}");
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

    #[test]
    fn whoever_listens_is_found_by_its_own_address_and_by_all() {
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let line = |at: String, state: &str, user: u32| {
            format!("   0: {at} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 {user} 0 1 1\n")
        };
        let here = |port: u16| format!("{}:{port:04X}", word([127, 0, 0, 1]));
        let list = [
            line(here(7717), "0A", 1000),
            line(here(7718), "01", 1001),
            line(format!("{}:1E27", word([0; 4])), "0A", 1002),
        ];
        let check = |listens: &str, expected: &[u32]| {
            let listens = listens.parse().unwrap_or_else(|fault| panic!("{listens}: {fault}"));
            assert_eq!(listeners_in(&list.concat(), listens).collect::<Vec<_>>(), expected, "{listens}");
        };
        check("127.0.0.1:7717", &[1000]);
        check("127.0.0.2:7717", &[]);
        check("127.0.0.1:7718", &[]);
        check("127.0.0.1:7719", &[1002]);
        check("[::1]:7719", &[1002]);
    }

    /// Whoever is not listed is of another machine, but for the loopback.
    #[test]
    fn one_from_elsewhere_may_be_anybody() {
        let end = |text: &str| text.parse().unwrap_or_else(|fault| panic!("{text}: {fault}"));
        assert!(!Ends { theirs: end("192.0.2.7:50000"), ours: end("192.0.2.1:7717") }.are_of_one_user());
        assert!(Ends { theirs: end("127.0.0.1:1"), ours: end("127.0.0.1:1") }.are_of_one_user());
    }
}
