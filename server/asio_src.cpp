// SPDX-License-Identifier: Apache-2.0
// Asio, its TLS and Beast, compiled once for the whole program. Only the types named here are
// compiled elsewhere.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
