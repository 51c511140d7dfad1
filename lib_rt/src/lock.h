/* Locks and variables of a thread. Without threads, DIOPIRT_NO_THREADS turns both into ordinary variables. */
#ifndef DIOPIRT_LOCK_H_
#define DIOPIRT_LOCK_H_

#ifndef DIOPIRT_NO_THREADS

#include <pthread.h>

typedef pthread_mutex_t diopirt_lock_t;

#define DIOPIRT_THREAD_LOCAL _Thread_local
#define DIOPIRT_LOCK_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define diopirt_lock_init(lock) pthread_mutex_init(lock, NULL)
#define diopirt_lock_acquire(lock) pthread_mutex_lock(lock)
#define diopirt_lock_release(lock) pthread_mutex_unlock(lock)
#define diopirt_lock_destroy(lock) pthread_mutex_destroy(lock)

#else

typedef struct {
    char unused;
} diopirt_lock_t;

#define DIOPIRT_THREAD_LOCAL
#define DIOPIRT_LOCK_INITIALIZER {0}
#define diopirt_lock_init(lock) ((void)(lock))
#define diopirt_lock_acquire(lock) ((void)(lock))
#define diopirt_lock_release(lock) ((void)(lock))
#define diopirt_lock_destroy(lock) ((void)(lock))

#endif

#endif /* DIOPIRT_LOCK_H_ */
