package systems.zlink.store.tests.surface;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.RecordComponent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.embedded.ZLinkEmbeddedLocationStore;
import systems.zlink.framework.locations.redis.ZLinkRedisLocationStore;
import systems.zlink.project.state.Project;
import systems.zlink.store.ZLinkStores;

/** The public declarations are those of the contract, word for word, and no others. */
class ContractTest {
    @Test
    void theAbstractionsAreExactlyTheContract() throws Exception {
        assertEquals(expected("contract.txt"), declared(ZLinkLocationStore.class));
    }

    @Test
    void theRedisPackageIsExactlyTheContract() throws Exception {
        assertEquals(expected("contract-redis.txt"), declared(ZLinkRedisLocationStore.class));
    }

    @Test
    void theEmbeddedPackageMirrorsIt() throws Exception {
        List<String> mirrored = expected("contract-redis.txt").stream()
                .map(line -> line.replace("Redis", "Embedded").replace("locations.redis", "locations.embedded"))
                .map(line -> line.replace("String connectionString()", "Path path()").replace("setConnectionString(String)", "setPath(Path)"))
                .sorted().toList();
        assertEquals(mirrored, declared(ZLinkEmbeddedLocationStore.class).stream().sorted().toList());
    }

    @Test
    void modulesExportOnlyWhatIsMeantForUsers() {
        Map<String, ModuleDescriptor> modules = Stream.of(
                        ZLinkLocationStore.class, ZLinkStores.class, ZLinkRedisLocationStore.class, ZLinkEmbeddedLocationStore.class,
                        Project.class)
                .map(ContractTest::jar)
                .flatMap(jar -> ModuleFinder.of(jar).findAll().stream())
                .collect(Collectors.toMap(found -> found.descriptor().name(), found -> found.descriptor()));
        assertEquals(
                Set.of("zlink.framework.provider.abstractions", "zlink.store.nativelib", "zlink.framework.locations.redis",
                        "zlink.framework.locations.embedded", "zlink.project.state"),
                modules.keySet());
        modules.forEach((name, module) -> {
            Set<String> exported = module.exports().stream().filter(export -> !export.isQualified())
                    .map(ModuleDescriptor.Exports::source).collect(Collectors.toSet());
            assertEquals(1, exported.size(), name + " exports " + exported);
            assertTrue(module.opens().isEmpty(), name);
        });
        assertEquals(
                Set.of("java.base"),
                modules.get("zlink.framework.provider.abstractions").requires().stream()
                        .map(ModuleDescriptor.Requires::name).collect(Collectors.toSet()));
    }

    @Test
    void recordsCopyTheirListsAndKeepTheirOrder() {
        List<ZLinkStoreMutation> mutations = new ArrayList<>(List.of(new ZLinkStoreDelete(new ZLinkStoreKey("b"))));
        ZLinkStoreWriteRequest request = new ZLinkStoreWriteRequest(List.of(), mutations);
        mutations.clear();
        assertEquals(1, request.mutations().size());
        assertThrows(UnsupportedOperationException.class, () -> request.mutations().clear());
        assertThrows(NullPointerException.class, () -> new ZLinkStoreWriteRequest(null, List.of()));

        Map<ZLinkStoreKey, ZLinkStoreVersion> versions = new LinkedHashMap<>();
        for (String key : List.of("z", "a", "m", "b")) {
            versions.put(new ZLinkStoreKey(key), new ZLinkStoreVersion(key));
        }
        ZLinkStoreWriteApplied applied = new ZLinkStoreWriteApplied(versions, Instant.EPOCH);
        versions.clear();
        assertEquals(List.of("z", "a", "m", "b"), applied.putVersions().keySet().stream().map(ZLinkStoreKey::value).toList());
        assertThrows(UnsupportedOperationException.class, () -> applied.putVersions().clear());
    }

    @Test
    void recordsWithArraysAreEqualByContentAndDoNotShowIt() {
        ZLinkStoreVersion version = new ZLinkStoreVersion("v");
        assertSame(
                new ZLinkStoreValue("secret".getBytes(), version, null, Instant.EPOCH),
                new ZLinkStoreValue("secret".getBytes(), version, null, Instant.EPOCH),
                new ZLinkStoreValue("other!".getBytes(), version, null, Instant.EPOCH));
        assertSame(
                new ZLinkStorePut(new ZLinkStoreKey("k"), "secret".getBytes(), null),
                new ZLinkStorePut(new ZLinkStoreKey("k"), "secret".getBytes(), null),
                new ZLinkStorePut(new ZLinkStoreKey("k"), "other!".getBytes(), null));
        assertSame(
                new ZLinkBlobFound("secret".getBytes(), Instant.EPOCH, Instant.EPOCH),
                new ZLinkBlobFound("secret".getBytes(), Instant.EPOCH, Instant.EPOCH),
                new ZLinkBlobFound("other!".getBytes(), Instant.EPOCH, Instant.EPOCH));
    }

    private static void assertSame(Record one, Record same, Record other) {
        assertEquals(one, same);
        assertEquals(one.hashCode(), same.hashCode());
        assertNotEquals(one, other);
        assertTrue(one.toString().contains("bytes=(6)"), one.toString());
    }

    // ---- declarations as text ----------------------------------------------------------------------------------------------------

    private static List<String> expected(String resource) throws IOException {
        try (var content = ContractTest.class.getResourceAsStream(resource)) {
            return new String(content.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8).lines()
                    .filter(line -> !line.isBlank() && !line.startsWith("#")).sorted().toList();
        }
    }

    /** The public types in the package of {@code one}, and their public members, a line each. */
    private static List<String> declared(Class<?> one) throws Exception {
        Set<String> lines = new TreeSet<>();
        for (Class<?> type : types(one)) {
            if (Modifier.isPublic(type.getModifiers())) {
                declare(type, lines);
            }
        }
        return List.copyOf(lines);
    }

    private static List<Class<?>> types(Class<?> one) throws Exception {
        Path place = jar(one);
        String folder = one.getPackageName().replace('.', '/') + "/";
        List<String> names;
        if (Files.isDirectory(place)) {
            try (Stream<Path> files = Files.list(place.resolve(folder))) {
                names = files.map(file -> folder + file.getFileName()).toList();
            }
        } else {
            try (JarFile jar = new JarFile(place.toFile())) {
                names = jar.stream().map(entry -> entry.getName()).filter(name -> name.startsWith(folder)).toList();
            }
        }
        List<Class<?>> types = new ArrayList<>();
        for (String name : names) {
            if (name.endsWith(".class") && !name.endsWith("package-info.class")) {
                types.add(Class.forName(name.substring(0, name.length() - ".class".length()).replace('/', '.')));
            }
        }
        return types;
    }

    private static Path jar(Class<?> type) {
        return Path.of(type.getProtectionDomain().getCodeSource().getLocation().getPath());
    }

    private static void declare(Class<?> type, Set<String> lines) {
        String name = type.getSimpleName();
        String supers = Arrays.stream(type.getInterfaces()).map(Class::getSimpleName).collect(Collectors.joining(", "));
        if (type.isRecord()) {
            String components = Arrays.stream(type.getRecordComponents())
                    .map((RecordComponent part) -> part.getGenericType().getTypeName() + " " + part.getName())
                    .map(ContractTest::simple).collect(Collectors.joining(", "));
            lines.add("record " + name + "(" + components + ")" + (supers.isEmpty() ? "" : " implements " + supers));
            assertEquals(type.getRecordComponents().length + 3, type.getDeclaredMethods().length - privates(type), name);
            return;
        }
        String kind = type.isInterface() ? type.isSealed() ? "sealed interface " : "interface " : "final class ";
        String permits = type.isSealed()
                ? " permits " + Arrays.stream(type.getPermittedSubclasses()).map(Class::getSimpleName).collect(Collectors.joining(", "))
                : "";
        lines.add(kind + name + (supers.isEmpty() ? "" : " implements " + supers) + permits);
        for (Constructor<?> constructor : type.getConstructors()) {
            lines.add(name + "." + name + "(" + parameters(constructor.getGenericParameterTypes()) + ")");
        }
        for (Method method : type.getDeclaredMethods()) {
            if (Modifier.isPublic(method.getModifiers())) {
                lines.add(name + "." + simple(method.getGenericReturnType().getTypeName()) + " " + method.getName() + "("
                        + parameters(method.getGenericParameterTypes()) + ")");
            }
        }
        assertEquals(0, type.getFields().length, name);
        assertEquals(0, type.getClasses().length, name);
    }

    private static int privates(Class<?> type) {
        return (int) Arrays.stream(type.getDeclaredMethods()).filter(method -> !Modifier.isPublic(method.getModifiers())).count();
    }

    private static String parameters(java.lang.reflect.Type[] types) {
        return Arrays.stream(types).map(java.lang.reflect.Type::getTypeName).map(ContractTest::simple).collect(Collectors.joining(", "));
    }

    private static String simple(String type) {
        return type.replaceAll("[a-z]+\\.", "");
    }
}
