package org.apache.kafka.server.util;

import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import scala.Function0;
import scala.runtime.BoxedUnit;

/** What runs later, by the name and with the methods that it has since 3.5. */
public interface Scheduler {
    void startup();

    void shutdown();

    ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs);

    void resizeThreadPool(int size);

    /** As this release calls it. */
    default kafka.utils.Scheduler before() {
        return new Before(this);
    }

    /** A scheduler of this release. */
    record Before(Scheduler scheduler) implements kafka.utils.Scheduler {
        @Override
        public void startup() {
            scheduler.startup();
        }

        @Override
        public void shutdown() {
            scheduler.shutdown();
        }

        @Override
        public boolean isStarted() {
            return true;
        }

        @Override
        public void schedule(String name, Function0<BoxedUnit> task, long delay, long period, TimeUnit unit) {
            scheduler.schedule(name, task::apply, unit.toMillis(delay), unit.toMillis(period));
        }
    }
}
