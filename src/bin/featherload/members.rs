//! The processes of a pool, found from outside by whose children they are:
//! coordinator and workers are there before the consumer can name them.

use std::fs;

use featherload::measure::{Member, Role};

/// The consumer `pid`, its children and theirs.
pub fn under(pid: i32) -> Vec<Member> {
    family(pid, &parents())
}

/// Every process that /proc shows, with its parent.
fn parents() -> Vec<(i32, i32)> {
    let Ok(all) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    all.filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parent(&stat)?))
    })
    .collect()
}

/// The name, in brackets, may hold anything; behind it are state and parent.
fn parent(stat: &str) -> Option<i32> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

/// A consumer's children are coordinators, whose children are workers.
fn family(consumer: i32, parents: &[(i32, i32)]) -> Vec<Member> {
    let children = |of: i32, role| {
        parents
            .iter()
            .filter(move |(_, parent)| *parent == of)
            .map(move |&(pid, _)| Member { role, pid })
    };
    let mut members = vec![Member {
        role: Role::Consumer,
        pid: consumer,
    }];
    for coordinator in children(consumer, Role::Coordinator) {
        members.push(coordinator);
        members.extend(children(coordinator.pid, Role::Worker));
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_theirs_belong_to_the_consumer_and_nobody_else() {
        let parents = [(1, 0), (7, 1), (9, 8), (5, 1), (8, 7), (10, 8), (11, 5)];
        let found: Vec<_> = family(7, &parents)
            .into_iter()
            .map(|m| (m.role.name(), m.pid))
            .collect();
        let expected = [
            ("consumer", 7),
            ("coordinator", 8),
            ("worker", 9),
            ("worker", 10),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_parent_is_read_behind_any_name() {
        assert_eq!(parent("12 (a) R 4) S 31 12 0"), Some(31));
        assert_eq!(parent("12"), None);
        let me = std::process::id() as i32;
        assert!(parents().iter().any(|(pid, _)| *pid == me));
    }
}
