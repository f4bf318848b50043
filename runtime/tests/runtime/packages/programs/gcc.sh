# The driver starts preprocessor, compiler, assembler and linker with vfork.
printf '#include <stdio.h>\nint main(void) { puts("compiled"); return 7; }\n' >program.c
$RUN /usr/bin/gcc-12 -O1 -o program program.c
$RUN /tmp/work/program
echo "status $?"
sha256sum program
echo 'int main(void) { return x; }' >wrong.c
$RUN /usr/bin/gcc-12 -c wrong.c
echo "status $?"
