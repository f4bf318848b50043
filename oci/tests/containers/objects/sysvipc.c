// System V's shared memory, semaphores and messages, between a parent and its child.
#include "round.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#define KEY 0x7a11
enum { ASKED, ANSWERED };

static int memory, semaphores, queue;
static volatile long *shared;

struct message {
    long kind;
    char text[8];
};

static void change(int semaphore, int by) {
    struct sembuf operation = {semaphore, by, 0};
    int result;
    do // CRIU's freezing interrupts it.
        result = semop(semaphores, &operation, 1);
    while (result == -1 && errno == EINTR);
    CHECK(result == 0);
}

static void send(long kind, const char *text) {
    struct message message = {kind, ""};
    strcpy(message.text, text);
    CHECK(msgsnd(queue, &message, strlen(text), 0) == 0);
}

static void prepare(void) {
    CHECK((memory = shmget(KEY, 2 * 4096, IPC_CREAT | 0640)) >= 0);
    CHECK((semaphores = semget(KEY, 2, IPC_CREAT | 0600)) >= 0);
    CHECK((queue = msgget(KEY, IPC_CREAT | 0600)) >= 0);
    CHECK((shared = shmat(memory, 0, 0)) != (void *)-1);
    send(1, "one");
    send(2, "a");
    send(2, "b");
    if (fork() == 0)
        for (;;) {
            change(ASKED, -1);
            shared[512] = shared[0];
            change(ANSWERED, 1);
        }
}

static void check(long step) {
    shared[0] = step;
    change(ASKED, 1);
    change(ANSWERED, -1);
    CHECK(shared[512] == step);
    struct message message = {};
    const char *text = step % 2 ? "b" : "a";
    CHECK(msgrcv(queue, &message, 8, 2, IPC_NOWAIT) == 1 && message.text[0] == text[0]);
    send(2, text);
    struct shmid_ds about;
    CHECK(shmctl(memory, IPC_STAT, &about) == 0);
    CHECK(about.shm_perm.mode == 0640 && about.shm_segsz == 2 * 4096 && about.shm_nattch == 2);
    struct msqid_ds messages;
    CHECK(msgctl(queue, IPC_STAT, &messages) == 0 && messages.msg_qnum == 3);
    CHECK(shmget(KEY, 0, 0) == memory && semget(KEY, 0, 0) == semaphores && msgget(KEY, 0) == queue);
}
