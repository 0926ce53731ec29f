module @HOME@/seglog-vectors

go 1.21
