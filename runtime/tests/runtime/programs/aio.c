// Asynchronous input and output by the kernel's old calls, and by looking into the ring as libaio does. Prints the same
// natively and translated.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct ring { unsigned id, nr, head, tail, magic, compatible, incompatible, header; struct io_event events[]; };

int main(void) {
    aio_context_t context = 0, wrong = 5;
    printf("wrong %ld %d", syscall(SYS_io_setup, 8, &wrong), errno);
    printf(" none %ld %d\n", syscall(SYS_io_setup, 0, &context), errno);
    printf("setup %ld", syscall(SYS_io_setup, 100, &context));
    struct ring *ring = (struct ring *)context;
    printf(" low %d ring %x %d\n", (uint64_t)ring >> 47 == 0, ring->magic, ring->nr >= 100);
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char text[] = "asynchronous", got[2][20] = {"", ""};
    struct iocb write = {.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = fd, .aio_buf = (uintptr_t)text, .aio_nbytes = 12, .aio_data = 7};
    struct iocb *list[2] = {&write};
    struct io_event events[4];
    printf("submit %ld", syscall(SYS_io_submit, context, 1, list));
    printf(" events %ld", syscall(SYS_io_getevents, context, 1, 4, events, NULL));
    printf(" data %d result %d\n", (int)events[0].data, (int)events[0].res);
    struct iocb reads[2];
    for (int n = 0; n < 2; n++) {
        reads[n] = (struct iocb){.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (uintptr_t)got[n], .aio_nbytes = 5, .aio_offset = n * 5, .aio_data = n};
        list[n] = &reads[n];
    }
    printf("submit %ld", syscall(SYS_io_submit, context, 2, list));
    // What libaio does without a call.
    while (*(volatile unsigned *)&ring->tail - ring->head < 2) {}
    printf(" in the ring: %d", (int)(ring->events[ring->head].res + ring->events[ring->head + 1].res));
    struct timespec none = {0, 1000};
    printf(" events %ld", syscall(SYS_io_pgetevents, context, 2, 4, events, &none, NULL));
    printf(" %s %s\n", got[0], got[1]);
    printf("none left %ld", syscall(SYS_io_getevents, context, 1, 4, events, &none));
    list[0] = (struct iocb *)8;
    printf(" bad %ld %d", syscall(SYS_io_submit, context, 1, list), errno);
    printf(" destroy %ld", syscall(SYS_io_destroy, context));
    printf(" gone %ld %d\n", syscall(SYS_io_destroy, context), errno);
    return 0;
}
