seq 10000 >file
$RUN /usr/bin/zstd -q -T2 -5 file
sha256sum file.zst
$RUN /usr/bin/zstd -dc file.zst | cmp - file
