# shellcheck shell=bash disable=SC2034,SC2054,SC2154
# What machine QEMU emulates. Sourced by vm, which sets the options that are read here.

# Fills the arrays `emulator` and `machine`, from vm's options.
describe_machine() {
    local words i
    # The guest's kernel starts fast, and moves no memory by itself.
    words="console=ttyS0 panic=-1 nokaslr mitigations=off random.trust_cpu=on no_timer_check tsc=reliable nowatchdog"
    words+=" audit=0 apparmor=0 selinux=0 cryptomgr.notests numa_balancing=disable"
    [ "$verbose" = 1 ] || words+=" quiet"
    emulator=(env "QEMU_MODULE_DIR=$tools/usr/lib/x86_64-linux-gnu/qemu" "${loader[@]}"
        "$tools/usr/bin/qemu-system-x86_64" -L "$tools/usr/share/qemu" -L "$tools/usr/share/seabios")
    machine=(-nodefaults -no-user-config -display none -no-reboot
        -accel tcg,thread=multi -cpu max,la57=off -kernel "$boot_files/vmlinuz" -initrd "$run/initrd"
        -append "$words $append" -chardev "file,id=console,path=$run/console" -serial chardev:console
        -device isa-debug-exit,iobase=0x501,iosize=1)
    describe_nodes
    share_folder host / ,readonly=on
    share_folder vm "$share"
    for i in "${!writable[@]}"; do share_folder "rw$i" "${writable[i]}"; done
}

share_folder() { # share_folder TAG FOLDER [OPTIONS]
    machine+=(-fsdev "local,id=$1,path=${2//,/,,},security_model=none,multidevs=remap${3:-}"
        -device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}

# The memory-only node of three is far from all; eight nodes are two groups of four.
distance() { # distance FROM TO
    if [ "$1" = "$2" ]; then
        echo 10
    elif [ "$nodes" = 8 ]; then
        echo $(($1 / 4 == $2 / 4 ? 16 : 28))
    elif memory_only "$1" || memory_only "$2"; then
        echo 30
    else
        echo 20
    fi
}

memory_only() { [[ $nodes = 3 && $1 = 2 ]]; }
without_memory() { [[ "$bare" = 1 && $1 = 1 ]]; }

describe_nodes() {
    local cpus sockets=$nodes each node text
    case $nodes in
        3) cpus=4 sockets=2 each=2 ;;
        4 | 8) cpus=$nodes each=1 ;;
        *) cpus=$((2 * nodes)) each=2 ;;
    esac
    : "${mem:=$((nodes == 8 ? 384 : 768))}"
    machine+=(-machine "pc,usb=off,vmport=off,hmat=$([ "$bare" = 1 ] && echo off || echo on)"
        -smp "cpus=$cpus,sockets=$sockets,threads=1" -m "$((mem * (nodes - bare)))M")
    for ((node = 0; node < nodes; node++)); do
        text=node,nodeid=$node
        if ! without_memory "$node"; then
            machine+=(-object "memory-backend-ram,id=memory$node,size=${mem}M")
            text+=,memdev=memory$node
        fi
        if ! memory_only "$node"; then
            text+=,cpus=$((node * each))-$((node * each + each - 1))
        fi
        if [ "$bare" = 0 ]; then
            text+=,initiator=$(memory_only "$node" && echo 0 || echo "$node")
        fi
        machine+=(-numa "$text")
    done
    describe_distances
}

# Distances, and where all nodes have memory also the table of latencies and bandwidths (ACPI's HMAT), from which
# the kernel tells tiers of memory.
describe_distances() {
    local from to far text
    for ((from = 0; from < nodes; from++)); do
        for ((to = 0; to < nodes; to++)); do
            far=$(distance "$from" "$to")
            [ "$from" = "$to" ] || machine+=(-numa "dist,src=$from,dst=$to,val=$far")
            if [ "$bare" = 1 ] || memory_only "$from"; then
                continue
            fi
            text=hmat-lb,initiator=$from,target=$to,hierarchy=memory,data-type=access
            machine+=(-numa "$text-latency,latency=$((far * 10))" -numa "$text-bandwidth,bandwidth=$((400 / far))G")
        done
    done
}
