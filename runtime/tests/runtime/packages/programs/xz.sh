seq 5000 >file
$RUN /usr/bin/xz -k -T2 file
sha256sum file.xz
$RUN /usr/bin/xz -dc file.xz | cmp - file
$RUN /usr/bin/xz -l --robot file.xz
