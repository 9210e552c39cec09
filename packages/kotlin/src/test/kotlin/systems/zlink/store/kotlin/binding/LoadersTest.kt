package systems.zlink.store.kotlin.binding

import java.io.File
import java.net.URLClassLoader
import java.util.concurrent.Callable
import java.util.concurrent.Executors
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotSame
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.ReadResult

/** A copy of the package in a class loader, at work. */
class Workout : Callable<String> {
    override fun call(): String = LocationStore.open("memory:").use { store ->
        runBlocking {
            val before = store.read("k")
            store.write { put("k", ByteArray(1)) }
            "${before is ReadResult.Found} ${store.read("k") is ReadResult.Found}"
        }
    }
}

class LoadersTest {
    private val places = System.getProperty("java.class.path").split(File.pathSeparator).map { File(it).toURI().toURL() }

    @Suppress("UNCHECKED_CAST")
    private fun workout(loader: ClassLoader): Callable<String> =
        loader.loadClass(Workout::class.java.name).getDeclaredConstructor().newInstance() as Callable<String>

    private fun bothWork(loaders: List<ClassLoader>) {
        val workouts = loaders.map(::workout)
        assertNotSame(workouts[0].javaClass, workouts[1].javaClass)
        val threads = Executors.newFixedThreadPool(loaders.size)
        assertEquals(listOf("false true", "false true"), threads.invokeAll(workouts).map { it.get() })
        threads.shutdown()
    }

    @Test
    fun `two class loaders that share nothing`() {
        bothWork(List(2) { URLClassLoader(places.toTypedArray(), ClassLoader.getPlatformClassLoader()) })
    }

    @Test
    fun `two class loaders with the libraries in their parent`() {
        val (ours, libraries) = places.partition { "/target/" in it.path }
        val parent = URLClassLoader(libraries.toTypedArray(), ClassLoader.getPlatformClassLoader())
        bothWork(List(2) { URLClassLoader(ours.toTypedArray(), parent) })
    }
}
