# Caddy with caddy-sitemap, run as an unprivileged user. Certificates, and what the
# module remembers of pages, are kept in /data.
FROM docker.io/library/golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go tool xcaddy build v2.11.9 --output /caddy \
    --with github.com/seed3295b519/caddy-sitemap@v0.0.0=.

FROM docker.io/library/alpine:3
RUN apk add --no-cache ca-certificates libcap mailcap tzdata \
 && adduser -D -H -u 1000 caddy \
 && install -d -o caddy -g caddy /data /config
COPY --from=build /caddy /usr/bin/caddy
RUN setcap cap_net_bind_service=+ep /usr/bin/caddy
ENV XDG_DATA_HOME=/data XDG_CONFIG_HOME=/config
VOLUME ["/data", "/config"]
WORKDIR /srv
EXPOSE 80 443 443/udp
USER caddy
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
