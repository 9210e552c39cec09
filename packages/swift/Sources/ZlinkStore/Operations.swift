import ZlinkStoreNative

/// What the operations of the native library have in common: made with arguments that were checked, and not yet started.
protocol NativeOperation: AnyObject, Sendable {
    func start() -> Bool
    func wait() async
    func cancel()
}

extension AcquireOperation: NativeOperation {}
extension AttachOperation: NativeOperation {}
extension BlobDeleteOperation: NativeOperation {}
extension BlobPutOperation: NativeOperation {}
extension BlobReadOperation: NativeOperation {}
extension BlobRenewOperation: NativeOperation {}
extension LeaseReleaseOperation: NativeOperation {}
extension LeaseRenewOperation: NativeOperation {}
extension PingOperation: NativeOperation {}
extension ReadOperation: NativeOperation {}
extension ScanOperation: NativeOperation {}
extension ShutdownOperation: NativeOperation {}
extension StateDeleteOperation: NativeOperation {}
extension StateGetOperation: NativeOperation {}
extension StateSetOperation: NativeOperation {}
extension WriteOperation: NativeOperation {}

/// Makes one async call of an operation's steps. A task that is cancelled ends the operation at once with `CancellationError`; what
/// the operation got and nobody took, such as a lease, is given back. A task that was cancelled before starts nothing.
func run<O: NativeOperation, R>(_ operation: O, _ result: (O) throws -> R) async throws -> R {
    try Task.checkCancellation()
    if !operation.start() {
        await withTaskCancellationHandler {
            await operation.wait()
        } onCancel: {
            operation.cancel()
        }
    }
    do {
        return try result(operation)
    } catch StoreError.Cancelled {
        throw CancellationError()
    }
}
