# Boots a systemd as process 1 of namespaces of its own. Nothing there is the machine's: not /run, /tmp, /var, /root
# or /etc, no unit, no control group, and no setting of the kernel.
# $1: folder with `units`, which alone systemd knows, and for all that it leaves. $2: name for its control groups.
# $3: a program, which is `tenfold` in the folder.
set -eu
home=$1 group=$2 program=$3
grep -E ' cgroup2? ' /proc/self/mounts | while read -r _ at _; do
    # Nothing runs in a group of this kind without processors.
    [ ! -e "$at/cpuset.sched_load_balance" ] || continue
    mkdir "$at/$group"
    echo $$ >"$at/$group/cgroup.procs"
done
chmod 755 "$home"
cp -a /etc "$home/etc"
touch "$home/tenfold"
export home program
# It ends with the story, even where that is killed.
exec setpriv --pdeathsig KILL unshare --cgroup --mount --uts --ipc --net --pid --fork \
    --kill-child --mount-proc sh -euc '
touch "$home/made"
mount --bind "$program" "$home/tenfold"
mount --rbind "$home" /mnt
for at in /run /tmp /var /root; do
    mount -t tmpfs tmpfs "$at"
done
ln -s /run /var/run
mkdir -p "$home" /var/tmp /run/dbus /run/none
mount --move /mnt "$home"
mount --bind "$home/etc" /etc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
groups=$(grep -E " cgroup2? " /proc/self/mounts)
umount --recursive /sys/fs/cgroup
[ "${groups#* cgroup }" = "$groups" ] || mount -t tmpfs tmpfs /sys/fs/cgroup
echo "$groups" | while read -r _ at kind options _; do
    mkdir -p "$at"
    case $options in
    *cpuset*) ;;
    *) mount -t "$kind" -o "${options#rw,*relatime,}" "$kind" "$at" ;;
    esac
done
ip link set lo up
exec env -i container=story PATH="$PATH" SYSTEMD_UNIT_PATH="/run/systemd/system.control:$home/units" SYSTEMD_GENERATOR_PATH=/run/none \
    SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/run/none SYSTEMD_LOG_TARGET=console \
    setpriv --bounding-set=-sys_time,-sys_module,-sys_rawio /lib/systemd/systemd --system --show-status=no
'
