//! Which addresses are this computer's, its network's, or nobody's. Pure.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) struct Own<'a> {
    pub interfaces: Vec<IpAddr>,
    pub subnets: &'a [IpNet],
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(first: u16, second: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), bits)
}

/// Somebody's own network, which a record may open.
const PRIVATE_V4: [Ipv4Net; 6] = [
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
];
/// This computer, everyone at once, or nobody: never.
const NEVER_V4: [Ipv4Net; 5] = [
    v4(0, 0, 0, 0, 8),
    v4(127, 0, 0, 0, 8),
    v4(192, 0, 0, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];
const PRIVATE_V6: [Ipv6Net; 3] = [v6(0xfc00, 0, 7), v6(0xfe80, 0, 10), v6(0xfec0, 0, 10)];
/// The first covers `::`, `::1` and the long-gone form in which an IPv4 address is at the end.
const NEVER_V6: [Ipv6Net; 4] =
    [v6(0, 0, 96), v6(0xff00, 0, 8), v6(0x0100, 0, 64), v6(0x2001, 0x0db8, 32)];

/// Where clouds tell a machine its own credentials. Not all of them are private addresses.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Public,
    Private,
    Never,
}

impl Own<'_> {
    pub fn may_dial(&self, address: IpAddr, allow_private: bool) -> bool {
        match self.kind(address) {
            Kind::Public => true,
            Kind::Private => allow_private,
            Kind::Never => false,
        }
    }

    fn kind(&self, address: IpAddr) -> Kind {
        match address {
            IpAddr::V4(v4) => self.kind_v4(v4),
            IpAddr::V6(v6) => match within(v6) {
                // Both what it says and what it leads to count.
                Some(v4) => worse(self.kind_v6(v6), self.kind_v4(v4)),
                None => self.kind_v6(v6),
            },
        }
    }

    fn kind_v4(&self, address: Ipv4Addr) -> Kind {
        let within = |nets: &[Ipv4Net]| nets.iter().any(|net| net.contains(&address));
        if within(&NEVER_V4) || METADATA_V4.contains(&address) || self.is_interface(address.into())
        {
            return Kind::Never;
        }
        if within(&PRIVATE_V4) || self.is_neighbour(address.into()) {
            return Kind::Private;
        }
        Kind::Public
    }

    fn kind_v6(&self, address: Ipv6Addr) -> Kind {
        let within = |nets: &[Ipv6Net]| nets.iter().any(|net| net.contains(&address));
        if within(&NEVER_V6) || METADATA_V6.contains(&address) || self.is_interface(address.into())
        {
            return Kind::Never;
        }
        if within(&PRIVATE_V6) || self.is_neighbour(address.into()) {
            return Kind::Private;
        }
        Kind::Public
    }

    fn is_interface(&self, address: IpAddr) -> bool {
        self.interfaces.contains(&address)
    }

    fn is_neighbour(&self, address: IpAddr) -> bool {
        self.subnets.iter().any(|net| net.contains(&address))
    }
}

fn worse(a: Kind, b: Kind) -> Kind {
    match (a, b) {
        (Kind::Never, _) | (_, Kind::Never) => Kind::Never,
        (Kind::Private, _) | (_, Kind::Private) => Kind::Private,
        _ => Kind::Public,
    }
}

/// The IPv4 address that an IPv6 address leads to: mapped, by NAT64, by 6to4, by ISATAP, or by Teredo.
fn within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match s {
        [0x2001, 0, _, _, _, _, high, low] => Some(v4(!high, !low)),
        // Of a network's own NAT64 the common prefix; where the address stands depends on it.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..]
        | [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own() -> Own<'static> {
        Own {
            interfaces: vec!["198.51.100.9".parse().unwrap(), "2a00::9".parse().unwrap()],
            subnets: &[],
        }
    }

    fn may(text: &str, allow_private: bool) -> bool {
        own().may_dial(text.parse().unwrap(), allow_private)
    }

    #[test]
    fn public_addresses_may_be_dialled() {
        for open in [
            "1.1.1.1",
            "140.82.112.3",
            "172.32.0.1",
            "11.0.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
        ] {
            assert!(may(open, false), "{open}");
        }
    }

    #[test]
    fn egress_12_43_private_addresses_need_a_record_that_says_so() {
        for private in [
            "10.0.0.1",
            "100.64.0.1",
            "169.254.1.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "fec0::1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::192.168.0.1",
            "2002:a00:1::1",
            "2002:c0a8:101::",
        ] {
            assert!(!may(private, false), "{private}");
            assert!(may(private, true), "{private}");
        }
    }

    #[test]
    fn egress_12_43_this_computer_and_metadata_are_never_dialled() {
        for never in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.8",
            "224.0.0.1",
            "239.255.255.255",
            "255.255.255.255",
            "240.0.0.1",
            "198.51.100.9",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::10.0.0.1",
            "ff02::1",
            "fd00:ec2::254",
            "2a00::9",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001:0:0:0:0:0:80ff:fffe",
            "2a01::5efe:127.0.0.1",
            "2a01::200:5efe:a9fe:a9fe",
            "2001:db8::1",
        ] {
            assert!(!may(never, true), "{never}");
            assert!(!may(never, false), "{never}");
        }
    }

    #[test]
    fn mapped_addresses_are_what_they_lead_to() {
        assert!(!may("::ffff:10.0.0.1", false));
        assert!(!may("::ffff:198.51.100.9", true));
    }

    #[test]
    fn networks_of_containers_are_private_wherever_they_are() {
        let subnets = ["203.0.113.0/24".parse().unwrap(), "2a05::/48".parse().unwrap()];
        let own = Own { interfaces: Vec::new(), subnets: &subnets };
        for near in ["203.0.113.7", "2a05::7"] {
            assert!(!own.may_dial(near.parse().unwrap(), false));
            assert!(own.may_dial(near.parse().unwrap(), true));
        }
        assert!(own.may_dial("203.0.114.7".parse().unwrap(), false));
    }

    proptest! {
        /// Whatever is refused as IPv4 is refused in every spelling that leads to it.
        #[test]
        fn no_spelling_opens_what_is_shut(bits in any::<u32>(), allow in any::<bool>()) {
            let address = Ipv4Addr::from(bits);
            let [a, b, c, d] = address.octets().map(u16::from);
            let (high, low) = (a << 8 | b, c << 8 | d);
            let spellings = [
                address.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !high, !low),
            ];
            if !own().may_dial(address.into(), allow) {
                for spelling in spellings {
                    prop_assert!(!own().may_dial(spelling.into(), allow), "{}", spelling);
                }
            }
        }
    }
}
