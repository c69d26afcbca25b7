//! Limits that control groups set for this process, versions 1 and 2.
//!
//! Used in the consumer before the ring is allocated, and by reports on the machine. A limit
//! applies to a group and all groups below it, so the smallest limit up to the root counts.
//! Unreadable files set no limit.

use std::path::{Path, PathBuf};

use super::text_file;

/// Version 1 writes "no limit" as the largest page-aligned number, or close to it.
const NO_LIMIT: u64 = 1 << 62;

/// Memory in bytes that may still be allocated under the limit. Page cache counts as used there but
/// can be dropped, so it is added back.
pub(crate) fn memory_left() -> Option<u64> {
    Controller::find(Path::new("/"), "memory")?.memory_left()
}

/// The memory limit in bytes.
pub(crate) fn memory_limit() -> Option<u64> {
    Controller::find(Path::new("/"), "memory")?.memory_limit()
}

/// The statistics file of this process's memory group, and its key for page cache including shared
/// memory. `None` for the root group, which is the whole machine.
pub(crate) fn memory_statistics() -> Option<(PathBuf, &'static str)> {
    Controller::find(Path::new("/"), "memory")?.memory_statistics()
}

/// CPU quota in processors: 1.5 is one and a half.
pub(crate) fn cpu_quota() -> Option<f64> {
    Controller::find(Path::new("/"), "cpu")?.cpu_quota()
}

/// Processes and threads that may still be started.
pub(crate) fn processes_left() -> Option<u64> {
    Controller::find(Path::new("/"), "pids")?.processes_left()
}

/// The folders of one controller for this process.
struct Controller {
    /// This process's group first, then its parents.
    groups: Vec<PathBuf>,
    version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    One,
    Two,
}

impl Controller {
    /// `root` is `/`, except in tests.
    fn find(root: &Path, name: &str) -> Option<Self> {
        let groups = text_file::of_kernel(&root.join("proc/self/cgroup"))?;
        let mounts = text_file::of_kernel(&root.join("proc/self/mountinfo"))?;
        // Format: `number:controllers:path`. A controller of version 1 is not in version 2.
        let mut lines = groups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?))
        });
        let of_one = lines
            .clone()
            .find(|(controllers, _)| controllers.split(',').any(|c| c == name));
        let (version, path) = match of_one {
            Some((_, path)) => (Version::One, path),
            None => (Version::Two, lines.find(|(c, _)| c.is_empty())?.1),
        };
        let (shown, mounted) = mounts.lines().find_map(|l| mount(l, version, name))?;
        let top = root.join(mounted.trim_start_matches('/'));
        // In a container the path may lie above the mounted group. Then the mounted group is the
        // closest one that is visible.
        let below = Path::new(path).strip_prefix(shown).unwrap_or(Path::new(""));
        let mut own = top.join(below);
        if !own.is_dir() {
            own.clone_from(&top);
        }
        let groups = own
            .ancestors()
            .take_while(|group| group.starts_with(&top))
            .map(Path::to_owned)
            .collect();
        Some(Self { groups, version })
    }

    fn memory_left(&self) -> Option<u64> {
        let (used, cache) = match self.version {
            Version::One => (
                "memory.usage_in_bytes",
                ["total_inactive_file", "total_active_file"],
            ),
            Version::Two => ("memory.current", ["inactive_file", "active_file"]),
        };
        let left = |group: &PathBuf| {
            let limit = self.limit_of(group)?;
            let stat = text_file::of_kernel(&group.join("memory.stat")).unwrap_or_default();
            let cached: u64 = cache
                .iter()
                .filter_map(|key| text_file::number(&stat, key))
                .sum();
            let used = number(&group.join(used))?;
            Some(limit.saturating_sub(used.saturating_sub(cached)))
        };
        self.groups.iter().filter_map(left).min()
    }

    fn memory_statistics(&self) -> Option<(PathBuf, &'static str)> {
        let [own, _, ..] = &self.groups[..] else {
            return None;
        };
        let cache = match self.version {
            Version::One => "total_cache",
            Version::Two => "file",
        };
        Some((own.join("memory.stat"), cache))
    }

    fn memory_limit(&self) -> Option<u64> {
        self.groups.iter().filter_map(|g| self.limit_of(g)).min()
    }

    fn limit_of(&self, group: &Path) -> Option<u64> {
        let file = match self.version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        number(&group.join(file)).filter(|&limit| limit < NO_LIMIT)
    }

    fn cpu_quota(&self) -> Option<f64> {
        let quota = |group: &PathBuf| {
            let (quota, period) = match self.version {
                Version::One => (
                    number(&group.join("cpu.cfs_quota_us"))?,
                    number(&group.join("cpu.cfs_period_us"))?,
                ),
                Version::Two => {
                    let text = text_file::of_kernel(&group.join("cpu.max"))?;
                    let (quota, period) = text.trim().split_once(' ')?;
                    (quota.parse().ok()?, period.parse().ok()?)
                }
            };
            (period > 0).then(|| quota as f64 / period as f64)
        };
        self.groups.iter().filter_map(quota).reduce(f64::min)
    }

    fn processes_left(&self) -> Option<u64> {
        let left = |group: &PathBuf| {
            let limit = number(&group.join("pids.max"))?;
            Some(limit.saturating_sub(number(&group.join("pids.current"))?))
        };
        self.groups.iter().filter_map(left).min()
    }
}

/// The part of the controller's tree that a line of mountinfo mounts, and its mount point. `None`
/// for another file system.
fn mount<'a>(line: &'a str, version: Version, controller: &str) -> Option<(&'a str, &'a str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let (system, _, options) = (kind.next()?, kind.next()?, kind.next()?);
    let right = match version {
        Version::One => system == "cgroup" && options.split(',').any(|o| o == controller),
        Version::Two => system == "cgroup2",
    };
    let mut place = place.split(' ').skip(3);
    right.then_some((place.next()?, place.next()?))
}

/// The number in a file; `None` for "max", for -1, and for a missing file.
fn number(file: &Path) -> Option<u64> {
    text_file::of_kernel(file)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    const TWO: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_least_limit_on_the_way_up_counts() {
        let dir = tree(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("proc/self/mountinfo", TWO),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.current", "10\n"),
            ("sys/fs/cgroup/a/memory.max", "1000\n"),
            ("sys/fs/cgroup/a/memory.current", "700\n"),
            (
                "sys/fs/cgroup/a/memory.stat",
                "anon 5\ninactive_file 100\nactive_file 50\n",
            ),
            ("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/a/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/b/pids.max", "20\n"),
            ("sys/fs/cgroup/a/b/pids.current", "3\n"),
            ("sys/fs/cgroup/a/pids.max", "10\n"),
            ("sys/fs/cgroup/a/pids.current", "9\n"),
        ]);
        let find = |name| Controller::find(dir.path(), name).unwrap();
        assert_eq!(find("memory").memory_limit(), Some(1000));
        assert_eq!(find("memory").memory_left(), Some(450));
        let own = dir.path().join("sys/fs/cgroup/a/b/memory.stat");
        assert_eq!(find("memory").memory_statistics(), Some((own, "file")));
        assert_eq!(find("cpu").cpu_quota(), Some(1.5));
        assert_eq!(find("pids").processes_left(), Some(1));
    }

    #[test]
    fn version_one_is_read_beside_version_two() {
        let mounts = "40 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      41 30 0:32 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                      42 30 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let dir = tree(&[
            ("proc/self/cgroup", "4:memory:/box\n3:cpuacct,cpu:/\n0::/\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4096\n"),
            ("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "4000\n"),
            (
                "sys/fs/cgroup/memory/box/memory.stat",
                "inactive_file 1\ntotal_inactive_file 900\n",
            ),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/unified/pids.max", "max\n"),
        ]);
        let find = |name| Controller::find(dir.path(), name).unwrap();
        assert_eq!(find("memory").version, Version::One);
        assert_eq!(find("memory").memory_limit(), Some(4096));
        assert_eq!(find("memory").memory_left(), Some(996));
        assert_eq!(find("cpu").cpu_quota(), None);
        assert_eq!(find("pids").version, Version::Two);
        assert_eq!(find("pids").processes_left(), None);
    }

    #[test]
    fn a_container_that_shows_its_own_group_as_the_root_is_read() {
        let mounts = "40 30 0:31 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        for path in ["/docker/x", "/elsewhere", "/../.."] {
            let dir = tree(&[
                ("proc/self/cgroup", &format!("4:memory:{path}\n")),
                ("proc/self/mountinfo", mounts),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"),
            ]);
            let memory = Controller::find(dir.path(), "memory").unwrap();
            assert_eq!(memory.memory_limit(), Some(4096), "{path}");
            assert_eq!(memory.memory_left(), None, "{path}");
        }
    }

    #[test]
    fn without_control_groups_there_is_no_limit() {
        let dir = tree(&[("proc/self/mountinfo", TWO)]);
        assert!(Controller::find(dir.path(), "memory").is_none());
        let dir = tree(&[
            ("proc/self/cgroup", "0::/\n"),
            ("proc/self/mountinfo", "1 1 0:1 / / rw - ext4 /dev/a rw\n"),
        ]);
        assert!(Controller::find(dir.path(), "memory").is_none());
    }
}
