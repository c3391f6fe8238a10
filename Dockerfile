# docker build -t atunner . && docker run --rm --gpus all atunner optimize --operator softmax --input-shape 8,1024,4096
FROM nvidia/cuda:13.0.1-devel-ubuntu24.04 AS build
WORKDIR /src
COPY scripts scripts
RUN scripts/install_dependencies.sh
COPY . .
RUN make build
FROM nvidia/cuda:13.0.1-devel-ubuntu24.04
COPY --from=build /src/build/atunner /usr/local/bin/atunner
COPY --from=build /src/build/libatunner_cuda.so /usr/local/lib/libatunner_cuda.so
COPY --from=build /src/build/libatunner_record.so /usr/local/lib/libatunner_record.so
COPY --from=build /src/build/libatunner_nccl.so /usr/local/lib/libatunner_nccl.so
COPY --from=build /src/build/libatunner_memory.so /usr/local/lib/libatunner_memory.so
ENTRYPOINT ["atunner"]
