import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Fills Kafka's generated messages by their setters, and prints what they write.
 *
 * A line names a class and a version, and goes on with words: <code>{ COUNT (NAME VALUE)*</code> for a structure,
 * <code>[ COUNT VALUE*</code> for an array, <code>~</code> for null, <code>=TEXT</code> for anything else; strings and
 * bytes are Base64. The answer is a line of Base64.
 */
final class WriteMessages {
    private WriteMessages() {
    }

    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Iterator<String> words = Arrays.asList(line.split(" ")).iterator();
            Message message = (Message) Class.forName(words.next()).getDeclaredConstructor().newInstance();
            short version = Short.parseShort(words.next());
            fill(message, words.next(), words);
            System.out.println(Base64.getEncoder().encodeToString(written(message, version)));
        }
    }

    private static byte[] written(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return Arrays.copyOf(buffer.array(), buffer.position());
    }

    private static void fill(Object target, String brace, Iterator<String> words) throws Exception {
        int count = Integer.parseInt(words.next());
        for (int i = 0; i < count; i++) {
            Method setter = setter(target.getClass(), words.next());
            Class<?> type = setter.getParameterTypes()[0];
            setter.invoke(target, value(type, setter.getGenericParameterTypes()[0], words.next(), words));
        }
    }

    private static Method setter(Class<?> holder, String field) {
        String name = "set" + Character.toUpperCase(field.charAt(0)) + field.substring(1);
        return Arrays.stream(holder.getMethods())
            .filter(each -> each.getName().equals(name) && each.getParameterCount() == 1)
            .findFirst().orElseThrow(() -> new IllegalArgumentException(holder + " has no " + name));
    }

    private static Object value(Class<?> type, Type generic, String word, Iterator<String> words) throws Exception {
        switch (word.charAt(0)) {
            case '~':
                return null;
            case '[':
                return elements(type, generic, words);
            case '{':
                Object inner = type.getDeclaredConstructor().newInstance();
                fill(inner, word, words);
                return inner;
            default:
                return simple(type, word.substring(1));
        }
    }

    private static Object elements(Class<?> type, Type generic, Iterator<String> words) throws Exception {
        boolean plain = type == List.class;
        Type of = plain ? generic : type.getGenericSuperclass();
        Class<?> element = (Class<?>) ((ParameterizedType) of).getActualTypeArguments()[0];
        @SuppressWarnings("unchecked")
        Collection<Object> found = plain
            ? new ArrayList<>() : (Collection<Object>) type.getDeclaredConstructor().newInstance();
        int count = Integer.parseInt(words.next());
        for (int i = 0; i < count; i++) {
            found.add(value(element, element, words.next(), words));
        }
        return found;
    }

    private static Object simple(Class<?> type, String text) {
        if (type == String.class) {
            return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
        } else if (type == byte[].class) {
            return Base64.getDecoder().decode(text);
        } else if (type == ByteBuffer.class) {
            return ByteBuffer.wrap(Base64.getDecoder().decode(text));
        } else if (type == Uuid.class) {
            return Uuid.fromString(text);
        } else if (type == boolean.class || type == Boolean.class) {
            return Boolean.parseBoolean(text);
        } else if (type == byte.class || type == Byte.class) {
            return Byte.parseByte(text);
        } else if (type == short.class || type == Short.class) {
            return Short.parseShort(text);
        } else if (type == int.class || type == Integer.class) {
            return Integer.parseInt(text);
        } else if (type == long.class || type == Long.class) {
            return Long.parseLong(text);
        } else if (type == double.class || type == Double.class) {
            return Double.parseDouble(text);
        }
        throw new IllegalArgumentException("no value of " + type);
    }
}
