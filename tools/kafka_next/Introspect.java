import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.jar.JarFile;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints what a release's classes say when they are asked, as lines of fields between tabs: settings with type, default
 * and allowed values, and levels of features, with the latest in production. No class is named to it: it looks at every one in the jars given.
 */
final class Introspect {
    private Introspect() {
    }

    public static void main(String[] jars) throws Exception {
        TreeSet<String> lines = new TreeSet<>();
        for (String jar : jars) {
            for (Class<?> each : classes(jar)) {
                settings(each, lines);
                levels(each, lines);
            }
        }
        lines.forEach(System.out::println);
        System.exit(0);
    }

    private static List<Class<?>> classes(String jar) throws Exception {
        List<Class<?>> found = new ArrayList<>();
        try (JarFile file = new JarFile(new File(jar))) {
            for (String name : file.stream().map(entry -> entry.getName()).filter(name -> name.endsWith(".class")).toList()) {
                if (!name.contains("/shaded/") && !name.contains("-info")) {
                    try {
                        String dotted = name.substring(0, name.length() - ".class".length()).replace('/', '.');
                        found.add(Class.forName(dotted, false, Introspect.class.getClassLoader()));
                    } catch (LinkageError needsMore) {
                        System.err.println(name + ": " + needsMore);
                    }
                }
            }
        }
        return found;
    }

    /** Definitions of settings in static fields, and those that static methods make. */
    private static void settings(Class<?> holder, TreeSet<String> lines) {
        try {
            for (Field field : holder.getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers()) && ConfigDef.class.isAssignableFrom(field.getType())) {
                    field.setAccessible(true);
                    settings(holder, (ConfigDef) field.get(null), lines);
                }
            }
            for (Method method : holder.getDeclaredMethods()) {
                if (Modifier.isStatic(method.getModifiers()) && method.getParameterCount() == 0
                        && ConfigDef.class.isAssignableFrom(method.getReturnType())) {
                    method.setAccessible(true);
                    settings(holder, (ConfigDef) method.invoke(null), lines);
                }
            }
        } catch (ReflectiveOperationException | LinkageError unusable) {
            System.err.println(holder + ": " + unusable);
        }
    }

    private static void settings(Class<?> holder, ConfigDef found, TreeSet<String> lines) {
        for (ConfigDef.ConfigKey key : found == null ? List.<ConfigDef.ConfigKey>of() : found.configKeys().values()) {
            String value = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE ? "(none)" : text(key.defaultValue);
            String allowed = key.validator == null || key.validator.toString().contains("@") ? "" : key.validator.toString();
            lines.add(line("setting", holder.getName(), key.name, key.type.toString(), value, allowed));
        }
    }

    /** Levels of the features that an enumeration has. */
    private static void levels(Class<?> holder, TreeSet<String> lines) {
        if (holder.isEnum() && has(holder, "featureLevel")) {
            String feature = has(holder, "featureName")
                ? asked(holder.getEnumConstants()[0], "featureName") : String.valueOf(constant(holder, "FEATURE_NAME"));
            for (Object level : holder.getEnumConstants()) {
                lines.add(line("level", feature, ((Enum<?>) level).name(), asked(level, "featureLevel")));
            }
            Object latest = constant(holder, "LATEST_PRODUCTION");
            if (latest != null) {
                lines.add(line("production", feature, asked(latest, "featureLevel")));
            }
        }
    }

    private static boolean has(Class<?> holder, String method) {
        return Arrays.stream(holder.getMethods()).anyMatch(one -> one.getName().equals(method) && one.getParameterCount() == 0);
    }

    private static Object constant(Class<?> holder, String name) {
        try {
            return holder.getField(name).get(null);
        } catch (ReflectiveOperationException none) {
            return null;
        }
    }

    private static String asked(Object object, String name) {
        try {
            Method method = object.getClass().getMethod(name);
            method.setAccessible(true);
            return String.valueOf(method.invoke(object));
        } catch (ReflectiveOperationException none) {
            return "";
        }
    }

    private static String text(Object value) {
        if (value instanceof Class<?> named) {
            return named.getName();
        }
        return value instanceof Object[] several ? Arrays.toString(several) : String.valueOf(value);
    }

    private static String line(String... fields) {
        return String.join("\t", Arrays.stream(fields).map(field -> field.replaceAll("\\s+", " ")).toList());
    }
}
