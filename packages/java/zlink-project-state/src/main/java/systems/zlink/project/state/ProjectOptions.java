package systems.zlink.project.state;

import java.time.Duration;

/**
 * Which project, and where its data is. Names are 1 to 128 of {@code A-Z a-z 0-9 . _ : / -}, beginning with a letter or digit.
 *
 * @param url {@code memory:}, {@code memory:name} (shared in the process), {@code file:/folder}, {@code redis://}, {@code rediss://},
 *     {@code redis+sentinel://}, {@code redis+cluster://} …
 * @param workspace the workspace
 * @param project the project
 * @param operationTimeout how long an operation may take in all, a wait for a lock aside; 1 to 2<sup>31</sup>-1 milliseconds
 */
public record ProjectOptions(String url, String workspace, String project, Duration operationTimeout) {
    /**
     * With the default operation timeout, 5 seconds.
     *
     * @param url where the data is
     * @param workspace the workspace
     * @param project the project
     */
    public ProjectOptions(String url, String workspace, String project) {
        this(url, workspace, project, Duration.ofSeconds(5));
    }

    /**
     * The same with another operation timeout.
     *
     * @param value how long an operation may take in all
     * @return the options
     */
    public ProjectOptions withOperationTimeout(Duration value) {
        return new ProjectOptions(url, workspace, project, value);
    }

    /** Without the URL, which may have a password. */
    @Override
    public String toString() {
        return "ProjectOptions[workspace=" + workspace + ", project=" + project + ", operationTimeout=" + operationTimeout + "]";
    }
}
