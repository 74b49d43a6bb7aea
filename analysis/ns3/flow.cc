// SPDX-License-Identifier: Apache-2.0
// The flow of `longfat bench` in ns-3: sender, router and receiver, one NewReno connection with SACK.
// Arguments: rate in bit/s, MTU in bytes, length in seconds, base RTT in seconds. Prints the goodput in bit/s.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace ns3;

int
main(int argc, char* argv[])
{
    if (argc != 5)
    {
        std::fprintf(stderr, "usage: flow RATE MTU SECONDS RTT\n");
        return 2;
    }
    const double rate = std::atof(argv[1]);
    const uint32_t mtu = std::atoi(argv[2]);
    const double seconds = std::atof(argv[3]);
    const double rtt = std::atof(argv[4]);
    const uint32_t buffer = 3 * rate / 8 * rtt; // three BDPs, as in the laboratory's flow
    const uint32_t headers = 20 + 32;           // IPv4; TCP with timestamps

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mtu - headers));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", QueueSizeValue(QueueSize("20000p")));

    NodeContainer nodes(3);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate))));
    link.SetDeviceAttribute("Mtu", UintegerValue(mtu));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(rtt / 4)));
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    Ipv4InterfaceContainer last;
    for (uint32_t k = 0; k < 2; ++k)
    {
        last = addresses.Assign(link.Install(nodes.Get(k), nodes.Get(k + 1)));
        addresses.NewNetwork();
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const InetSocketAddress receiver(last.GetAddress(1), 5001);
    ApplicationContainer sinks = PacketSinkHelper("ns3::TcpSocketFactory", receiver).Install(nodes.Get(2));
    BulkSendHelper bulk("ns3::TcpSocketFactory", receiver);
    bulk.SetAttribute("SendSize", UintegerValue(1 << 17));
    bulk.Install(nodes.Get(0));

    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::printf("%.0f\n", DynamicCast<PacketSink>(sinks.Get(0))->GetTotalRx() * 8 / seconds);
    Simulator::Destroy();
    return 0;
}
