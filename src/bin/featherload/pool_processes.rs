//! Finds the processes of a pool from outside, by parent process: coordinator and workers exist
//! before the consumer can name them.

use featherload::internals::parents;
use featherload::measure::{PoolProcess, ProcessRole};

/// The consumer `pid`, its children and grandchildren.
pub fn pool_of(pid: i32) -> Vec<PoolProcess> {
    family(pid, &parents())
}

/// Children of a consumer are coordinators; their children are workers.
fn family(consumer: i32, parents: &[(i32, i32)]) -> Vec<PoolProcess> {
    let children = |of: i32, role| {
        parents
            .iter()
            .filter(move |(_, parent)| *parent == of)
            .map(move |&(pid, _)| PoolProcess { role, pid })
    };
    let mut members = vec![PoolProcess {
        role: ProcessRole::Consumer,
        pid: consumer,
    }];
    for coordinator in children(consumer, ProcessRole::Coordinator) {
        members.push(coordinator);
        members.extend(children(coordinator.pid, ProcessRole::Worker));
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
}
