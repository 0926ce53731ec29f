package scala.jdk.javaapi;

import java.util.Optional;
import scala.Option;

/** Options of Scala 2.12, by the name of what turns them into Java's since 2.13. */
public final class OptionConverters {
    private OptionConverters() {
    }

    public static <A> Optional<A> toJava(Option<A> found) {
        return found.isDefined() ? Optional.of(found.get()) : Optional.empty();
    }
}
