# shellcheck shell=bash
# The cache of tests/guest/vm: QEMU with all that it needs, down to the C library, and each kernel with the first file
# system that starts it, unpacked from Debian's packages. Sourced by vm.

TOOLS=(qemu-system-x86 qemu-system-arm busybox-static kmod)
# Each part of the cache has a number, to be raised when what is made of the packages changes.
TOOLS_EDITION=2
KERNEL_EDITION=1
# What the guest needs until it has a root file system: the rest of the modules is left out.
MODULES=(virtio_pci 9pnet_virtio 9p overlay)

# Whether this machine can run guests at all; the way out with the reason if not.
can_run() {
    local id='' version=''
    [ "$(uname -m)" = x86_64 ] || skip "the machine is no x86-64"
    [ "$(id -u)" -eq 0 ] || skip "not root"
    if [ -r /etc/os-release ]; then
        id=$(sed -n 's/^ID=//p' /etc/os-release)
        version=$(sed -n 's/^VERSION_ID="\(.*\)"$/\1/p' /etc/os-release)
    fi
    [[ $id = debian && $version =~ ^1[23]$ ]] || skip "the system is neither Debian 12 nor 13"
    [[ -n ${HOMENODE_GUEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-}}} ]] || skip "no folder for a cache: HOME is not set"
    cache=${HOMENODE_GUEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/homenode-guest}
    tools=$cache/tools-$TOOLS_EDITION
    # Programs of the cache run with the libraries of the cache: this machine's may be older.
    loader=(env -u LD_PRELOAD -u LD_LIBRARY_PATH "$tools/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
        --library-path "$tools/usr/lib/x86_64-linux-gnu")
}

fill_cache() { # fill_cache KERNEL
    boot_files=$cache/kernel-$1-$KERNEL_EDITION
    [[ ! -d $tools || ! -d $boot_files ]] || return 0
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock -w 900 9 || die "another process fills the cache for too long"
    [ -d "$tools" ] || fetch trixie unpack_tools
    if [ ! -d "$boot_files" ]; then
        case $1 in
            6.12) fetch trixie unpack_kernel ;;
            6.1) fetch bookworm unpack_kernel ;;
            arm64) fetch trixie unpack_arm64_kernel ;;
        esac
    fi
    exec 9>&-
}

# Calls the function UNPACK in a new folder, with $apt set to get packages of the release SUITE, whatever this
# machine's own is, as if nothing were installed here.
fetch() { # fetch SUITE UNPACK
    local work
    work=$(mktemp -d "$cache/new.XXXXXX")
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf -- '$work'" EXIT
    mkdir -p "$work"/{lists,archives}/partial "$work"/{none,root,packages}
    : >"$work/status"
    printf 'deb %s %s main\n' "$(mirror)" "$1" >"$work/sources"
    apt=(-q -o "Dir::State::Lists=$work/lists" -o "Dir::State::status=$work/status"
        -o "Dir::State::extended_states=$work/extended" -o "Dir::Cache=$work" -o "Dir::Etc::sourcelist=$work/sources"
        -o "Dir::Etc::sourceparts=$work/none" -o "Dir::Etc::preferences=$work/none/none"
        -o "Dir::Etc::preferencesparts=$work/none" -o APT::Sandbox::User= -o APT::Install-Recommends=false
        -o APT::Update::Error-Mode=any -o Acquire::Retries=3)
    note "fetching from $(<"$work/sources")"
    attempt apt-get "${apt[@]}" update
    "$2" "$work"
    rm -rf -- "$work"
    trap - EXIT
}

# The place that this machine's own packages come from.
mirror() {
    local found
    found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true)
    found=$(sed -nE 's#^(URIs:|deb .*)[ \t]*(https?://[^ \t]*/debian)/?([ \t].*)?$#\2#p' <<<"$found")
    found=${found%%$'\n'*}
    echo "${found:-http://deb.debian.org/debian}"
}

# Runs a command that needs the network; without one there is no guest, which CI does not take for an answer.
attempt() {
    local said
    if said=$("$@" 2>&1); then return; fi
    tail -n 8 <<<"$said" >&2
    [ -z "${CI:-}" ] || die "'$1' failed, and CI needs the guest"
    skip "'$1' failed: no network?"
}

unpack() { # unpack WORK PACKAGE...: into WORK/root, as on a system whose /bin is /usr/bin
    local root=$1/root name
    mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
    for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
    for name in "${@:2}"; do
        dpkg-deb --fsys-tarfile "$name" | tar -xf - -C "$root" --no-same-owner --keep-directory-symlink
    done
    rm -rf -- "$root"/usr/share/{doc,man,locale,icons}
}

unpack_tools() {
    attempt apt-get "${apt[@]}" -y --download-only install "${TOOLS[@]}"
    unpack "$1" "$1"/archives/*.deb
    "$1/root/bin/busybox" true || die "the fetched busybox does not run"
    mv -T -- "$1/root" "$tools"
}

# The package linux-image-amd64 holds nothing, but depends on the kernel of its release.
unpack_kernel() {
    local root=$1/root name version
    name=$(apt-cache "${apt[@]}" depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
    (cd "$1/packages" && attempt apt-get "${apt[@]}" download "${name%%$'\n'*}")
    unpack "$1" "$1"/packages/*.deb
    version=$(basename -- "$root"/usr/lib/modules/*)
    make_first_root "$1" "$version"
    mkdir "$1/boot"
    pack "$1/first" >"$1/boot/initrd"
    mv "$root/boot/vmlinuz-$version" "$1/boot/vmlinuz"
    mv -T -- "$1/boot" "$boot_files"
}

# The kernel of another architecture, and a busybox for it; all that starts the emulated machine is built in.
unpack_arm64_kernel() {
    local root=$1/root name
    apt+=(-o APT::Architecture=arm64 -o APT::Architectures=arm64)
    attempt apt-get "${apt[@]}" update
    name=$(apt-cache "${apt[@]}" depends linux-image-arm64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
    (cd "$1/packages" && attempt apt-get "${apt[@]}" download "${name%%$'\n'*}" busybox-static)
    unpack "$1" "$1"/packages/*.deb
    mkdir "$1/boot"
    mv "$root"/boot/vmlinuz-* "$1/boot/vmlinuz"
    mv "$root/usr/bin/busybox" "$1/boot/"
    mv -T -- "$1/boot" "$boot_files"
}

# A folder in the format of a kernel's first file system.
pack() {
    (cd "$1" && find . | LC_ALL=C sort | "$tools/bin/busybox" cpio -o -H newc 2>/dev/null)
}

# The guest's first file system but for init: busybox, and the modules in the order in which they are to be loaded.
make_first_root() { # make_first_root WORK VERSION
    local folder=$1/root/usr/lib/modules/$2 first=$1/first file number=10
    mkdir -p "$first"/{bin,proc,sys,dev,host,layer,root,modules}
    cp "$tools/bin/busybox" "$first/bin/"
    "${loader[@]}" --argv0 depmod "$tools/usr/bin/kmod" -b "$1/root" "$2"
    while read -r file; do
        case $file in
            *.xz) "$tools/bin/busybox" unxz -c "$folder/$file" ;;
            *) cat "$folder/$file" ;;
        esac >"$first/modules/$number.ko"
        number=$((number + 1))
    done < <(with_needed "$folder/modules.dep" "${MODULES[@]}")
}

# The files of modules and of all that they need, which comes first. A module without a file is part of the kernel.
with_needed() { # with_needed MODULES.DEP NAME...
    awk -F ': *' -v wanted="${*:2}" '
        { name = $1; sub(/.*\//, "", name); sub(/\.ko.*/, "", name); gsub(/-/, "_", name)
          file[name] = $1; needed[name] = $2 }
        END { count = split(wanted, names, " ")
              for (i = 1; i <= count; i++) if (names[i] in file) {
                  for (j = split(needed[names[i]], files, " "); j; j--) if (!seen[files[j]]++) print files[j]
                  if (!seen[file[names[i]]]++) print file[names[i]] } }' "$1"
}
