package scala.jdk.javaapi;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import scala.collection.Iterable;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** Collections of Scala 2.12, by the name of what turns them into Java's since 2.13. */
public final class CollectionConverters {
    private CollectionConverters() {
    }

    public static <A> List<A> asJava(Seq<A> found) {
        return JavaConverters.seqAsJavaList(found);
    }

    public static <A, B> Map<A, B> asJava(scala.collection.Map<A, B> found) {
        return JavaConverters.mapAsJavaMap(found);
    }

    public static <A> Collection<A> asJavaCollection(Iterable<A> found) {
        return JavaConverters.asJavaCollection(found);
    }

    public static <A, B> scala.collection.Map<A, B> asScala(Map<A, B> found) {
        return JavaConverters.mapAsScalaMap(found);
    }
}
